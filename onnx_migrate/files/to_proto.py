"""Puts a model's structure and its weights into one ModelProto."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.files.wire.protobuf import header
from onnx_migrate.model.model import Model
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.model.tensors import has_type, tensors

__all__ = ["inline"]


def inline(model: Model) -> onnx.ModelProto:
    """Return a complete copy of the model that holds all its data, each payload in the field that it was read from.

    Takes as much memory as all weights. A reference to a file that the model was loaded without stays a reference (see
    `load`). Raises LoadError if a file that holds payloads has changed since it was read or is missing.
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
                tensor.MergeFromString(header(DATA_FIELDS[payload.field], payload.length) + payload.read())
            tensor.MergeFromString(payload.extra_fields)
    return proto
