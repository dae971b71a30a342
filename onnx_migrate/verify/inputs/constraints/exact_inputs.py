"""Inputs of floats that decide on a shape or a text, where rounding has no small effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import onnx
from onnx import NodeProto, TensorProto

from onnx_migrate.model.graphs import fed_inputs, nested_nodes
from onnx_migrate.verify.inputs.constraints.operator_ranges import inputs_passed_through

__all__ = ["exact_inputs"]

_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16})

_DECIDING = frozenset(
    {("Resize", 2), ("Upsample", 1), ("OneHot", 1), ("Range", 0), ("Range", 1), ("Range", 2)}
)
"""Operators and the positions of their inputs that the output's shape depends on."""


def exact_inputs(model: onnx.ModelProto) -> frozenset[str]:
    """Return the graph inputs of floats that an operator takes unchanged as scales, a depth or limits, or writes as text.

    To measure how far outputs move by rounding these stay as they are: a scale of 1 that is a little smaller makes the
    output one element shorter.
    """
    consumers: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in nested_nodes(model.graph.node):
        for index, name in enumerate(node.input):
            consumers.setdefault(name, []).append((node, index))
    texts = {v.name for v in fed_inputs(model.graph) if v.type.tensor_type.elem_type == TensorProto.STRING}
    floats = (v.name for v in fed_inputs(model.graph) if v.type.tensor_type.elem_type in _FLOATS)
    return frozenset(name for name in floats if _decides(name, consumers, texts))


def _decides(start: str, consumers: Mapping[str, Sequence[tuple[NodeProto, int]]], texts: Set[str]) -> bool:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for node, index in consumers.get(name, ()):
            target = next((a.i for a in node.attribute if a.name == "to"), 0) if node.op_type == "Cast" else 0
            written = target == TensorProto.STRING or (node.op_type == "CastLike" and node.input[1] in texts)
            if (node.op_type, index) in _DECIDING or written:
                return True
            if index in inputs_passed_through(node):
                waiting.extend(node.output)
    return False
