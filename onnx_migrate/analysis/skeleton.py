"""A copy of a structure for onnx's own analyses, in which no large payload takes part."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.model.tensors import mark_external, tensors
from onnx_migrate.model.weights import INLINE_LIMIT

__all__ = ["skeleton"]


def skeleton(proto: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy for shape inference or the checker; large tensors keep only their type.

    The graph of a `Model` holds no large payloads, so this is one copy of the graph; payloads that a pass has
    added meanwhile are left out of it.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    for tensor in tensors(copy):
        if tensor.data_location == TensorProto.EXTERNAL or len(tensor.raw_data) <= INLINE_LIMIT:
            continue
        tensor.ClearField("raw_data")
        mark_external(tensor, "skeleton", 0, 0)
    return copy
