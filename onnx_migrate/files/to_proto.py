"""A model's structure and its weights in one protobuf."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.files.wire.protobuf import header
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import has_type, tensors

__all__ = ["FIELD_NUMBER", "inline"]

FIELD_NUMBER = {"float_data": 4, "raw_data": 9, "double_data": 10}


def inline(model: Model) -> onnx.ModelProto:
    """Return a complete copy of the model with all its data inside, each tensor's in the field it came in.

    Takes the memory of all weights. What the model came without (see `load`) stays a reference. Raises LoadError
    when a file they lie in has changed or is gone.
    """
    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    for tensor in tensors(proto):
        if tensor.data_location == TensorProto.EXTERNAL and not model.weights.is_absent(tensor):
            payload = model.weights.payload(tensor)
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.ClearField("raw_data")
            if payload.field == "raw_data" or not has_type(payload.field, tensor.data_type):
                tensor.raw_data = payload.read()
            else:
                tensor.MergeFromString(header(FIELD_NUMBER[payload.field], payload.length) + payload.read())
            tensor.MergeFromString(payload.marks)
    return proto
