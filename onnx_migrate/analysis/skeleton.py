"""A copy of a model without large payloads, for onnx's shape inference and checker."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.model.tensors import mark_external, tensors
from onnx_migrate.model.weights import INLINE_LIMIT

__all__ = ["skeleton"]


def skeleton(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy in which every tensor of more than INLINE_LIMIT bytes of raw data has its type and shape alone.

    The structure of a `Model` holds no large payloads except those that passes have added, which are removed here.
    Such a tensor refers to a file that does not exist.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for tensor in tensors(copy):
        if tensor.data_location == TensorProto.EXTERNAL or len(tensor.raw_data) <= INLINE_LIMIT:
            continue
        tensor.ClearField("raw_data")
        mark_external(tensor, "skeleton", 0, 0)
    return copy
