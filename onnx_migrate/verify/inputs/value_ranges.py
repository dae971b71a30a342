"""Which values each graph input may have: those that the nodes accept which the input's elements reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx
from onnx import GraphProto, NodeProto

from onnx_migrate.analysis.onnx_inference import without_fragile_ops
from onnx_migrate.model.graphs import initializer_types, nested_nodes
from onnx_migrate.verify.inputs.operator_ranges import Range, accepted_range, inputs_passed_through

__all__ = ["input_ranges"]


def input_ranges(model: onnx.ModelProto) -> dict[str, Range]:
    """Return the range of each graph input's values; inputs of which nothing is known are left out.

    An input is followed through nodes that pass its elements through, into sub-graphs and into local functions.
    """
    trace = _Trace(model)
    found: dict[str, Range] = {}
    for value in model.graph.input:
        for accepted in trace.accepted(value.name):
            known = found.get(value.name)
            found[value.name] = accepted if known is None else known.intersection(accepted)
    return found


_Consumers = Mapping[str, Sequence[tuple[NodeProto, int]]]
"""The nodes that read each value, with the position of the input they read it at."""


class _Trace:
    """Follows values of a model to the nodes that restrict them."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._lengths = _Lengths(model)
        self._functions = {(f.domain, f.name): f for f in model.functions}
        self._main = _consumers(model.graph.node)

    def accepted(self, name: str) -> Iterator[Range]:
        """Yield the ranges that nodes accept of a value of the main graph."""
        return self._follow("", name, self._main, set())

    def _follow(
        self, scope: str, name: str, consumers: _Consumers, seen: set[tuple[str, str]]
    ) -> Iterator[Range]:
        if (scope, name) in seen:
            return
        seen.add((scope, name))
        for node, index in consumers.get(name, ()):
            function = self._functions.get((node.domain, node.op_type))
            if function is not None and index < len(function.input):
                inner = f"{scope}/{node.op_type}"
                yield from self._follow(inner, function.input[index], _consumers(function.node), seen)
                continue
            accepted = accepted_range(node, index, self._lengths.of)
            if accepted is not None:
                yield accepted
            if index in inputs_passed_through(node):
                for output in node.output:
                    yield from self._follow(scope, output, consumers, seen)


def _consumers(nodes: Sequence[NodeProto]) -> dict[str, list[tuple[NodeProto, int]]]:
    table: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in nested_nodes(nodes):
        for index, name in enumerate(node.input):
            table.setdefault(name, []).append((node, index))
    return table


class _Lengths:
    """Lengths of axes: of constants from the model, of computed values from shape inference, run when first needed."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._dims: dict[str, list[int | None]] = {
            name: list(dims) for name, _, dims in initializer_types(model.graph)
        }
        for node in model.graph.node:
            for attribute in node.attribute:
                if node.op_type == "Constant" and attribute.name == "value":
                    self._dims[node.output[0]] = list(attribute.t.dims)
        self._inferred = False

    def of(self, name: str, axis: int) -> int | None:
        """Return the length of an axis of a value; None where it is unknown."""
        if name not in self._dims and not self._inferred:
            self._inferred = True
            for value in _values(_shaped(self._model)):
                kind = value.type.tensor_type
                if kind.HasField("shape"):
                    dims = [d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim]
                    self._dims.setdefault(value.name, dims)
        found = self._dims.get(name)
        return found[axis] if found is not None and -len(found) <= axis < len(found) else None


def _shaped(model: onnx.ModelProto) -> GraphProto:
    """Return the graph with inferred shapes, or unchanged where inference fails: then fewer lengths are known."""
    try:
        return onnx.shape_inference.infer_shapes(without_fragile_ops(model)).graph
    except Exception:  # onnx raises unrelated kinds
        return model.graph


def _values(graph: GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.value_info
    yield from graph.input
    yield from graph.output
