"""Which values each operator accepts at each of its inputs, as far as random numbers could violate it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import NodeProto

__all__ = ["Range", "accepted_range", "inputs_passed_through"]


@dataclass(frozen=True)
class Range:
    """Values an input may have: from `low` to `high` (both included), or exactly `pattern`, repeated to fit its shape.

    `weak` marks a guess, which a range that is not weak replaces instead of narrowing it.
    """

    low: float
    high: float
    pattern: tuple[float, ...] = ()
    weak: bool = False

    def intersection(self, other: Range) -> Range:
        """Return the range that satisfies both; if there is none, this one, or the one that is not weak."""
        if self.weak != other.weak:
            return other if self.weak else self
        if self.pattern or other.pattern:
            return self if self.pattern else other
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Range(low, high, weak=self.weak) if low <= high else self


_PASSED_THROUGH = {
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
"""The positions of inputs whose elements the output consists of; None is all of them."""

_BOOLEAN = Range(0, 1, weak=True)
_POSITIVE = Range(0.25, 2.0)

_ACCEPTED: dict[tuple[str, int], Range] = {
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
"""By operator and position of the input; chosen so that shapes and counts that follow from them stay small."""

_REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2", "ReduceL1")
_ACCEPTED.update({(operator, 1): Range(0, 0) for operator in _REDUCTIONS})


def inputs_passed_through(node: NodeProto) -> range | tuple[int, ...]:
    """Return the positions of the inputs whose elements appear unchanged, or cast, in the node's outputs."""
    positions = _PASSED_THROUGH.get(node.op_type, ())
    return range(len(node.input)) if positions is None else positions


def accepted_range(node: NodeProto, index: int, length: Callable[[str, int], int | None]) -> Range | None:
    """Return the range of values that a node accepts at input `index`; None if any value will do.

    `length` returns the length of an axis of a value, None where it is unknown: indices stay within it.
    """
    operator = node.op_type
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    if operator in ("Gather", "GatherElements", "ScatterElements", "Scatter") and index == 1:
        return _index_range(length(node.input[0], axis))
    if operator in ("GatherND", "ScatterND") and index == 1:
        return _index_range(length(node.input[0], 0))
    if operator == "OneHot" and index == 0:
        return Range(0, 7)
    if operator in ("Sub", "Not") or (operator in ("Equal", "Where", "Greater", "Less") and index == 0):
        return _BOOLEAN
    return _ACCEPTED.get((operator, index))


def _index_range(length: int | None) -> Range:
    return Range(0, max(0, length - 1)) if length is not None else Range(0, 1, weak=True)
