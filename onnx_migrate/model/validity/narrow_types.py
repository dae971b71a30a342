"""Whether a model has floating-point types beside float32, so that its nodes may mix them."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import TensorProto

from onnx_migrate.model.graphs import initializer_types, nested_bodies
from onnx_migrate.standard.retyping import FLOATS

__all__ = ["has_narrow_types"]


def has_narrow_types(proto: onnx.ModelProto) -> bool:
    """Return whether a model stores or declares numbers of a narrow type, or casts to one."""
    graphs = (body for _, body in nested_bodies(proto.graph) if isinstance(body, onnx.GraphProto))
    narrow = {kind for kind in FLOATS if kind != TensorProto.FLOAT}
    return any(not narrow.isdisjoint(_kinds_of(graph)) for graph in graphs)


def _kinds_of(graph: onnx.GraphProto) -> Iterator[int]:
    """Yield the element types that a body stores, declares or casts to."""
    for _, kind, _ in initializer_types(graph):
        yield kind
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.type.tensor_type.elem_type
    for node in graph.node:
        if node.op_type in ("Cast", "Constant"):
            yield from (attribute.i or attribute.t.data_type for attribute in node.attribute)
