"""The ranges of the outputs of ai.onnx operators, computed from the ranges of their inputs.

A rule gets a node, the ranges and the node's attributes. It returns a range for each output, None if it may be anything.
Integer ranges are exact. Float ranges are finite, and slightly wider than the rounded results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from onnx import TensorProto, numpy_helper

from onnx_migrate.facts.typed_graph import Step, Value

__all__ = ["RULES", "Interval", "hull", "widened"]

Interval = tuple[float, float]
"""The smallest and the largest number; of integers Python's, which are exact."""


class Known(Protocol):
    """The questions that a rule asks about values; a value may be None if the input is absent."""

    def of(self, value: Value | None) -> Interval | None:
        """Return the range of a value, None for one that may be anything."""

    def shape(self, value: Value | None) -> tuple[int | None, ...] | None:
        """Return the shape of a value."""

    def elements(self, value: Value | None) -> int | None:
        """Return how many elements a value has."""


Rule = Callable[[Step, Known, dict[str, Any]], list[Interval | None]]

_SLACK = 2.0**-8
"""By how much of itself a range of floats is widened at each node: more than float16 rounds by."""

_INTEGERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8)


def widened(known: Interval, largest: float) -> Interval | None:
    """Return a range of floats with room for rounding; None if a number may exceed `largest`."""
    low, high = known[0] - abs(known[0]) * _SLACK, known[1] + abs(known[1]) * _SLACK
    return (low, high) if -largest <= low and high <= largest else None


def hull(ranges: Iterable[Interval | None]) -> Interval | None:
    """Return the smallest range around all of some."""
    all_ranges = list(ranges)
    known_ranges = [each for each in all_ranges if each is not None]
    if not known_ranges or len(known_ranges) < len(all_ranges):
        return None
    return (min(low for low, _ in known_ranges), max(high for _, high in known_ranges))


def _corners(a: Interval, b: Interval, function: Callable[[float, float], float]) -> Interval:
    corner_values = [function(x, y) for x in a for y in b]
    return (min(corner_values), max(corner_values))


def _of(*places: int) -> Rule:
    """The elements of these inputs, or of all, moved, left out or repeated."""

    def rule(step: Step, ranges: Known, _: dict[str, Any]) -> list[Interval | None]:
        moved_values = (
            [step.inputs[index] for index in places if index < len(step.inputs)] if places else step.inputs
        )
        whole_range = hull(ranges.of(value) for value in moved_values if value is not None)
        return [whole_range] * len(step.outputs)

    return rule


def _elements(function: Callable[..., Interval | None]) -> Rule:
    """An element-wise operator, by its function of ranges."""

    def rule(step: Step, ranges: Known, _: dict[str, Any]) -> list[Interval | None]:
        input_ranges = [ranges.of(value) for value in step.inputs]
        known_ranges = [each for each in input_ranges if each is not None]
        # A range follows only from all operands.
        if len(known_ranges) < len(input_ranges):
            return [None]
        try:
            return [function(*known_ranges)]
        except (ZeroDivisionError, ValueError, OverflowError):
            return [None]

    return rule


def _divided(a: Interval, b: Interval) -> Interval | None:
    integers = all(isinstance(end, int) for end in (*a, *b))
    if b[0] <= 0 <= b[1]:
        # By 0 integers are not divided, and no other is nearer to it than 1.
        largest = max(abs(a[0]), abs(a[1]))
        return (-largest, largest) if integers else None
    if integers:
        return _corners(a, b, lambda x, y: int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1))
    return _corners(a, b, lambda x, y: x / y)


def _remainder(step: Step, ranges: Known, attributes: dict[str, Any]) -> list[Interval | None]:
    a, b = map(ranges.of, step.inputs)
    if a is None or b is None:
        return [None]
    most = max(abs(b[0]), abs(b[1]))
    if attributes.get("fmod"):
        return [(min(0, max(a[0], -most)), max(0, min(a[1], most)))]
    return [(min(0, b[0] + 1), max(0, b[1] - 1))]


def _power(a: Interval, b: Interval) -> Interval | None:
    if b[0] < 0 or b[1] > 64 or not all(isinstance(end, int) for end in (*a, *b)):
        return None
    most = int(max(abs(a[0]), abs(a[1]), 1)) ** int(b[1])
    return (-most if a[0] < 0 else 0, most)


def _bits(a: Interval, b: Interval) -> Interval:
    """Return the range of an And, Or or Xor: as many bits as the operands have."""
    width = max(int(end).bit_length() for end in (*a, *b))
    return (0 if min(a[0], b[0]) >= 0 else -(2**width), 2**width - 1)


def _sum(step: Step, ranges: Known, _: dict[str, Any]) -> list[Interval | None]:
    """A sum of some elements of the input, as many as the output has fewer."""
    x, y = step.inputs[0], step.outputs[0]
    element_range, whole, output_elements = ranges.of(x), ranges.elements(x), ranges.elements(y)
    if element_range is None or whole is None or output_elements is None:
        return [None]
    count = whole if step.is_a("CumSum") else math.ceil(whole / max(1, output_elements))
    return [(min(0, element_range[0] * count), max(0, element_range[1] * count))]


def _mean(step: Step, ranges: Known, attributes: dict[str, Any]) -> list[Interval | None]:
    """Return the range of a mean. Its sum must not overflow."""
    summed = _sum(step, ranges, attributes)[0]
    element_range = ranges.of(step.inputs[0])
    return [None if summed is None or element_range is None else hull((summed, element_range))]


def _product(step: Step, ranges: Known, _: dict[str, Any]) -> list[Interval | None]:
    a, b, shape = *map(ranges.of, step.inputs[:2]), ranges.shape(step.inputs[0])
    if a is None or b is None or not shape or shape[-1] is None:
        return [None]
    low, high = _corners(a, b, lambda x, y: x * y)
    return [(min(0, low * shape[-1]), max(0, high * shape[-1]))]


def _cast(step: Step, ranges: Known, _: dict[str, Any]) -> list[Interval | None]:
    source_range, output = ranges.of(step.inputs[0]), step.outputs[0]
    if source_range is None or output is None:
        return [None]
    # A Cast to an integer truncates.
    if output.dtype in _INTEGERS:
        return [(math.trunc(source_range[0]), math.trunc(source_range[1]))]
    return [None if output.dtype == TensorProto.BOOL else source_range]


def _clip(step: Step, ranges: Known, attributes: dict[str, Any]) -> list[Interval | None]:
    source_range = ranges.of(step.inputs[0])
    if source_range is None:
        return [None]
    low, high = source_range
    for input_index, name in ((1, "min"), (2, "max")):
        value = step.inputs[input_index] if input_index < len(step.inputs) else None
        if value is None and name not in attributes:
            continue
        # Older versions have the limits as attributes.
        bound = ranges.of(value) if value is not None else (attributes[name], attributes[name])
        if bound is None:
            return [None]
        limit = max if name == "min" else min
        low, high = limit(low, bound[0]), limit(high, bound[1])
    return [(low, high)]


def _index(place: int) -> Rule:
    """Indices in an axis of the input, as output `place`; before it are numbers of the input."""

    def rule(step: Step, ranges: Known, attributes: dict[str, Any]) -> list[Interval | None]:
        shape, axis = ranges.shape(step.inputs[0]), attributes.get("axis", -1 if step.is_a("TopK") else 0)
        size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
        index_range = None if size is None else (0, max(0, size - 1))
        return [*[ranges.of(step.inputs[0])] * place, index_range]

    return rule


def _places(step: Step, ranges: Known, _: dict[str, Any]) -> list[Interval | None]:
    """Indices in any axis of the inputs, or in all elements; Unique gives numbers of the input first."""
    shapes = [ranges.shape(value) for value in step.inputs[:2]]
    sizes = [size or 2**63 for shape in shapes for size in shape or [None]]
    if step.is_a("Unique"):
        count = ranges.elements(step.inputs[0])
        index_range: Interval | None = None if count is None else (0, count)
        return [ranges.of(step.inputs[0]), index_range, index_range, index_range]
    return [(0, max(sizes)) if sizes else None]


def _pooled(step: Step, ranges: Known, _: dict[str, Any]) -> list[Interval | None]:
    """Return the ranges of a pool with indices: output 1 has indices into all elements."""
    count = ranges.elements(step.inputs[0])
    return [None, None if count is None else (0, count)]


def _shape(step: Step, ranges: Known, _: dict[str, Any]) -> list[Interval | None]:
    shape = ranges.shape(step.inputs[0])
    if shape is None or None in shape:
        return [None]
    sizes = [size for size in shape if size is not None]
    return [(0, math.prod(sizes) if step.is_a("Size") else max(sizes, default=0))]


def _filled(step: Step, _: Known, attributes: dict[str, Any]) -> list[Interval | None]:
    value = attributes.get("value")
    number = 0.0 if value is None else numpy_helper.to_array(value).reshape(-1)[0].item()
    return [(number, number) if math.isfinite(number) else None]


def _with_zero(step: Step, ranges: Known, _: dict[str, Any]) -> list[Interval | None]:
    return [hull([ranges.of(step.inputs[0]), (0, 0)])]


def _padded(step: Step, ranges: Known, attributes: dict[str, Any]) -> list[Interval | None]:
    if attributes.get("mode", b"constant") != b"constant":
        return [ranges.of(step.inputs[0])]
    value, number = step.inputs[2] if len(step.inputs) > 2 else None, attributes.get("value", 0)
    return [hull([ranges.of(step.inputs[0]), (number, number) if value is None else ranges.of(value)])]


def _scattered(step: Step, ranges: Known, attributes: dict[str, Any]) -> list[Interval | None]:
    if attributes.get("reduction", b"none") not in (b"none", b"min", b"max"):
        return [None]
    return [hull([ranges.of(step.inputs[0]), ranges.of(step.inputs[2])])]


_RANGES: dict[Rule, str] = {
    _of(): "Concat",
    _elements(lambda *each: (min(low for low, _ in each), min(high for _, high in each))): "Min",
    _elements(lambda *each: (max(low for low, _ in each), max(high for _, high in each))): "Max",
    _of(0): "Compress DepthToSpace Expand Flatten Gather GatherElements GatherND Identity ReduceMax ReduceMin"
    " Reshape ReverseSequence Slice SpaceToDepth Split Squeeze Tile Transpose Unsqueeze",
    _of(0, 1): "Range",
    _of(1, 2): "Where",
    _of(2): "OneHot",
    _elements(lambda a, b: (a[0] + b[0], a[1] + b[1])): "Add",
    _elements(lambda a, b: (a[0] - b[1], a[1] - b[0])): "Sub",
    _elements(lambda a, b: _corners(a, b, lambda x, y: x * y)): "Mul",
    _elements(_divided): "Div",
    _elements(_power): "Pow",
    _elements(_bits): "BitwiseAnd BitwiseOr BitwiseXor",
    _elements(lambda a: (-a[1] - 1, -a[0] - 1)): "BitwiseNot",
    _elements(lambda a: (-a[1], -a[0])): "Neg",
    _elements(lambda a: (max(0, a[0], -a[1]), max(abs(a[0]), abs(a[1])))): "Abs",
    _elements(lambda a: (max(0, a[0]), max(0, a[1]))): "Relu",
    _elements(lambda _: (-1, 1)): "Sign",
    _elements(lambda a: (math.floor(a[0]), math.ceil(a[1]))): "Ceil Floor Round",
    _elements(lambda a: (math.sqrt(a[0]), math.sqrt(a[1]))): "Sqrt",
    _elements(lambda a: (math.log(a[0]), math.log(a[1]))): "Log",
    _elements(lambda a: (math.exp(a[0]), math.exp(a[1]))): "Exp",
    _remainder: "Mod",
    _sum: "CumSum ReduceSum",
    _mean: "ReduceMean",
    _product: "MatMul",
    _cast: "Cast",
    _clip: "Clip",
    _index(0): "ArgMax ArgMin",
    _index(1): "TopK",
    _places: "NonMaxSuppression NonZero Unique",
    _pooled: "MaxPool",
    _shape: "Shape Size",
    _filled: "ConstantOfShape",
    _with_zero: "Trilu",
    _padded: "Pad",
    _scattered: "Scatter ScatterElements ScatterND",
}

RULES: dict[str, Rule] = {name: rule for rule, names in _RANGES.items() for name in names.split()}
"""The rules of operators of ai.onnx; numbers of all others may be anything."""
