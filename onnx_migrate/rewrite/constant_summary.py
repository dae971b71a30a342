"""Constants as a report shows them: name, type and shape, and the values of small ones."""

from __future__ import annotations

import math
from collections.abc import Iterable

import onnx
from onnx import TensorProto

from onnx_migrate.facts.scope import Scope

__all__ = ["constant_summaries"]

_MAX_ELEMENTS = 8
"""The number of elements up to which a summary includes the values."""


def constant_summaries(
    scope: Scope, names: Iterable[str], cache: dict[str, bytes] | None = None
) -> tuple[bytes, ...]:
    """Return a summary of each of the named values that is a constant, once each, as a serialised TensorProto.

    A summary has the constant's name, element type and shape. It has no values, and its `data_location` is EXTERNAL, if the
    constant has more than 8 elements or its data is in a file. The cost does not depend on the size of
    constants. `cache` holds the summaries of earlier calls for the same scope; new ones are added to it.
    """
    cache = {} if cache is None else cache
    summaries = []
    for name in dict.fromkeys(names):
        if name not in cache:
            source = scope.constant_source(name) if name else None
            tensor = _tensor_of(source, scope, name) if isinstance(source, onnx.NodeProto) else source
            if tensor is None:
                continue
            cache[name] = _summary(tensor, name)
        summaries.append(cache[name])
    return tuple(summaries)


def _tensor_of(node: onnx.NodeProto, scope: Scope, name: str) -> TensorProto | None:
    """Return the tensor of a Constant node, None for text and sparse tensors."""
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.type == onnx.AttributeProto.TENSOR:
            return attribute.t
    array = scope.constant(name)
    return None if array is None else onnx.numpy_helper.from_array(array)


def _summary(tensor: TensorProto, name: str) -> bytes:
    if math.prod(tensor.dims) <= _MAX_ELEMENTS and tensor.data_location != TensorProto.EXTERNAL:
        summary = TensorProto()
        summary.CopyFrom(tensor)
        summary.name = name
        summary.ClearField("doc_string")
    else:
        external = TensorProto.EXTERNAL
        summary = TensorProto(name=name, data_type=tensor.data_type, dims=tensor.dims, data_location=external)
    return summary.SerializeToString(deterministic=True)
