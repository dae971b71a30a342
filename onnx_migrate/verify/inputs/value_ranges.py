"""Finds out which values an input may take, by following it to the nodes that consume it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import onnx
from onnx import AttributeProto, GraphProto, NodeProto, numpy_helper

from onnx_migrate.analysis.onnx_inference import sheltered
from onnx_migrate.model.graphs import initializer_types, nested_nodes

__all__ = ["Range", "constant_text", "input_ranges"]


@dataclass(frozen=True)
class Range:
    """Values an input may take: from `low` to `high` (both included), or exactly `pattern`, repeated to fit.

    `weak` marks a guess that a firmer finding replaces, not narrows.
    """

    low: float
    high: float
    pattern: tuple[float, ...] = ()
    weak: bool = False

    def meet(self, other: Range) -> Range:
        """Return what satisfies both, or the firmer of the two where nothing does."""
        if self.weak != other.weak:
            return other if self.weak else self
        if self.pattern or other.pattern:
            return self if self.pattern else other
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Range(low, high, weak=self.weak) if low <= high else self


_PASSING = {
    "Identity": (0,),
    "Cast": (0,),
    "CastLike": (0,),
    "Unsqueeze": (0,),
    "Squeeze": (0,),
    "Reshape": (0,),
    "Flatten": (0,),
    "Transpose": (0,),
    "Expand": (0,),
    "Tile": (0,),
    "Slice": (0,),
    "Gather": (0,),
    "Split": (0,),
    "Where": (1, 2),
    "Dropout": (0,),
    "Concat": None,
}
"""The inputs whose values come out unchanged; None is all of them."""

_MASKED = Range(0, 1, weak=True)
_POSITIVE = Range(0.25, 2.0)

_FIXED: dict[tuple[str, int], Range] = {
    ("OneHot", 1): Range(8, 8),
    ("ConstantOfShape", 0): Range(1, 3),
    ("Tile", 1): Range(1, 2),
    ("Expand", 1): Range(1, 1),
    ("Reshape", 1): Range(0, 0, (0.0,)),
    ("TopK", 1): Range(1, 2),
    ("Range", 0): Range(0, 0),
    ("Range", 1): Range(3, 5),
    ("Range", 2): Range(1, 1),
    ("Loop", 0): Range(2, 4),
    ("Loop", 1): Range(1, 1),
    ("Slice", 1): Range(0, 0),
    ("Slice", 2): Range(1, 3),
    ("Slice", 3): Range(0, 0),
    ("Slice", 4): Range(1, 1),
    ("Resize", 2): Range(1, 2, (1.0, 1.0, 2.0, 1.5)),
    ("Resize", 3): Range(1, 1, (1.0, 3.0, 24.0, 40.0)),
    ("Upsample", 1): Range(1, 2, (1.0, 1.0, 2.0, 3.0)),
    ("NonMaxSuppression", 2): Range(8, 8),
    ("NonMaxSuppression", 3): Range(0.5, 0.5),
    ("NonMaxSuppression", 4): Range(0.0, 0.0),
    ("Unsqueeze", 1): Range(0, 0),
    ("Squeeze", 1): Range(0, 0),
    ("CumSum", 1): Range(0, 0),
    ("Pad", 1): Range(0, 2),
    ("Clip", 1): Range(-1.0, -1.0),
    ("Clip", 2): Range(1.0, 1.0),
    ("BatchNormalization", 4): _POSITIVE,
    ("QuantizeLinear", 1): _POSITIVE,
    ("DequantizeLinear", 1): _POSITIVE,
    ("RNN", 4): Range(1, 1),
    ("GRU", 4): Range(1, 1),
    ("LSTM", 4): Range(1, 1),
    ("Log", 0): _POSITIVE,
    ("Sqrt", 0): _POSITIVE,
}
"""What an operator demands of the values at one of its inputs."""

_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceL1")
_FIXED.update({(operator, 1): Range(0, 0) for operator in _REDUCTIONS})


def input_ranges(model: onnx.ModelProto) -> dict[str, Range]:
    """Return what is known of each graph input's values; an input of which nothing is known is left out."""
    lengths = _Lengths(model)
    functions = {(f.domain, f.name): f for f in model.functions}
    main = _consumers(model.graph.node)
    found: dict[str, Range] = {}
    for value in model.graph.input:
        seen: set[tuple[str, str]] = set()

        def follow(
            scope: str,
            name: str,
            consumers: Mapping[str, list[tuple[NodeProto, int]]],
            seen: set[tuple[str, str]],
        ) -> Iterator[Range]:
            if (scope, name) in seen:
                return
            seen.add((scope, name))
            for node, index in consumers.get(name, ()):
                function = functions.get((node.domain, node.op_type))
                if function is not None and index < len(function.input):
                    inner = f"{scope}/{node.op_type}"
                    yield from follow(inner, function.input[index], _consumers(function.node), seen)
                    continue
                demand = _demand(node, index, lengths.of)
                if demand is not None:
                    yield demand
                passing = _PASSING.get(node.op_type, ())
                if passing is None or index in passing:
                    for output in node.output:
                        yield from follow(scope, output, consumers, seen)

        for demand in follow("", value.name, main, seen):
            found[value.name] = found[value.name].meet(demand) if value.name in found else demand
    return found


def _consumers(nodes: Sequence[NodeProto]) -> dict[str, list[tuple[NodeProto, int]]]:
    table: dict[str, list[tuple[NodeProto, int]]] = {}
    for node in nested_nodes(nodes):
        for index, name in enumerate(node.input):
            table.setdefault(name, []).append((node, index))
    return table


def _demand(node: NodeProto, index: int, length: Callable[[str, int], int | None]) -> Range | None:
    operator = node.op_type
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    if operator in ("Gather", "GatherElements", "ScatterElements", "Scatter") and index == 1:
        return _indices(length(node.input[0], axis))
    if operator in ("GatherND", "ScatterND") and index == 1:
        return _indices(length(node.input[0], 0))
    if operator == "OneHot" and index == 0:
        return Range(0, 7)
    if operator in ("Sub", "Not") or (operator in ("Equal", "Where", "Greater", "Less") and index == 0):
        return _MASKED
    return _FIXED.get((operator, index))


def _indices(length: int | None) -> Range:
    return Range(0, max(0, length - 1)) if length is not None else Range(0, 1, weak=True)


class _Lengths:
    """Looks up axis lengths: of constants at once, of computed values by inference when asked."""

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
    """Return the graph with inferred shapes, or as it is where inference fails; then fewer are known."""
    try:
        return onnx.shape_inference.infer_shapes(sheltered(model)).graph
    except Exception:  # inference raises what it likes on odd models; feeds then rest on what is declared
        return model.graph


def _values(graph: GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.value_info
    yield from graph.input
    yield from graph.output


def constant_text(model: onnx.ModelProto, name: str) -> str | None:
    """Return what a constant holds, or its type and shape where that is much; None if it is none."""
    tensor = next((t for t in model.graph.initializer if t.name == name), None)
    for node in nested_nodes(model.graph.node):
        if tensor is None and node.op_type == "Constant" and node.output[0] == name:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.TENSOR:
                    tensor = attribute.t
                elif attribute.type == AttributeProto.INTS:
                    return str(list(attribute.ints))
    if tensor is None:
        return None
    if prod(tensor.dims) > 16 or tensor.data_location == onnx.TensorProto.EXTERNAL:
        kind = onnx.TensorProto.DataType.Name(tensor.data_type).lower()
        return f"{kind}[{', '.join(map(str, tensor.dims))}]"
    return str(numpy_helper.to_array(tensor).ravel().tolist())
