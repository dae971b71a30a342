"""Which values each graph input may have: those that the nodes accept which the input's elements reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx
from onnx import NodeProto, TensorProto

from onnx_migrate.model.graphs import nested_nodes, subgraphs
from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.operator_ranges import accepted_range, inputs_passed_through
from onnx_migrate.verify.inputs.constraints.ranges import Range, range_before

__all__ = ["input_ranges"]

_DEEPEST = 64
"""Nodes after which an input is not followed any further."""

_INTEGERS = frozenset(
    {TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64}
    | {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
)


def input_ranges(
    model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, Range]:
    """Return the range of each graph input's values; inputs of which nothing is known are left out.

    An input is followed through nodes that pass its elements through or do integer arithmetic, into sub-graphs and
    into local functions. `shapes` are those that the inputs will have.
    """
    flat = _without_functions(model)
    trace = _Trace(flat, Facts(flat, shapes))
    found: dict[str, Range] = {}
    for value in model.graph.input:
        text = value.type.tensor_type.elem_type == TensorProto.STRING
        for accepted in trace.accepted(value.name):
            if bool(accepted.words) != text:
                continue
            known = found.get(value.name)
            found[value.name] = accepted if known is None else known.intersection(accepted)
    return found


def _without_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with its local functions inlined; as it is where onnx does not do that."""
    if not model.functions:
        return model
    import onnx.inliner  # part of onnx from 1.15 on

    try:
        return onnx.inliner.inline_local_functions(model)
    except Exception:  # onnx raises unrelated kinds; then inputs are followed up to the calls
        return model


_Consumers = Mapping[str, Sequence[tuple[NodeProto, int]]]
"""The nodes that read each value, with the position of the input they read it at."""


class _Trace:
    """Follows values of a model without functions to the nodes that restrict them."""

    def __init__(self, model: onnx.ModelProto, facts: Facts) -> None:
        self._facts = facts
        self._consumers = _consumers(model.graph.node)

    def accepted(self, name: str) -> Iterator[Range]:
        """Yield the ranges that nodes accept of a value."""
        return self._follow(name, set(), 0)

    def _follow(self, name: str, seen: set[str], depth: int) -> Iterator[Range]:
        if name in seen or depth > _DEEPEST:
            return
        seen.add(name)
        for node, index in self._consumers.get(name, ()):
            accepted = accepted_range(node, index, self._facts)
            if accepted is not None:
                yield accepted
            if index in inputs_passed_through(node):
                for output in node.output:
                    yield from self._follow(output, seen, depth + 1)
            elif index >= 2 and node.op_type == "Loop":
                for _, _, body in subgraphs(node):
                    for inner in body.input[index : index + 1]:  # a body that is not valid has fewer
                        yield from self._follow(inner.name, seen, depth + 1)
            elif self._facts.element_type(name) in _INTEGERS or self._facts.shape(name) == ():
                for output in node.output[:1]:
                    for behind in self._follow(output, seen, depth + 1):
                        before = range_before(node, index, behind, self._facts)
                        if before is not None:
                            yield before


def _consumers(nodes: Sequence[NodeProto]) -> dict[str, list[tuple[NodeProto, int]]]:
    table: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in nested_nodes(nodes):
        for index, name in enumerate(node.input):
            if name:
                table.setdefault(name, []).append((node, index))
    return table
