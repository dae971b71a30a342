"""Ranges of an input's values: intersects two ranges, and derives a range before an operator from that behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, floor

from onnx import NodeProto

from onnx_migrate.verify.inputs.constraints.facts import Argument

__all__ = ["BOOLEAN", "DOMAIN", "INVERTED", "POSITIVE", "Range", "range_before"]


@dataclass(frozen=True)
class Range:
    """Values an input may have: from `low` to `high` (both included), or exactly `pattern`, repeated to fit its shape.

    `weak` marks a guess, which a range that is not weak replaces instead of narrowing it. `discrete` holds for inputs of integers
    only: others have any value. `domain` marks the range in which a function has numbers: outside it gives NaN or infinity.
    `words` are the possible texts of an input of strings.
    """

    low: float
    high: float
    pattern: tuple[float, ...] = ()
    weak: bool = False
    discrete: bool = False
    words: tuple[str, ...] = ()
    domain: bool = False

    @classmethod
    def exactly(cls, *pattern: float) -> Range:
        """Return the range of the one vector `pattern`."""
        return cls(min(pattern, default=0), max(pattern, default=0), tuple(pattern))

    def intersection(self, other: Range) -> Range:
        """Return the range that satisfies both; if there is none, this one, or the one that is not weak."""
        # A requirement counts more than a preference.
        if self.weak != other.weak:
            return other if self.weak else self
        if self.pattern or other.pattern:
            # A pattern and a range cannot be combined.
            return self if self.pattern else other
        if self.discrete != other.discrete and min(self.low, other.low) < 0:
            return self.intersection(replace(other, discrete=self.discrete))
        low, high = max(self.low, other.low), min(self.high, other.high)
        # No value satisfies both, so the node with this range decides.
        if low > high:
            return self
        discrete, domain = self.discrete and other.discrete, self.domain and other.domain
        return replace(self, low=low, high=high, discrete=discrete, domain=domain)


BOOLEAN = Range(0, 1, weak=True)
POSITIVE = Range(0.25, 2.0)
DOMAIN = Range(0.25, 2.0, domain=True)


_SAME = frozenset({"ReduceMax", "ReduceMin", "Max", "Min", "Clip", "Relu", "Ceil", "Floor", "Round", "Abs"})
"""Operators whose output lies in a range with 0 or above in it if their input does."""

INVERTED = _SAME | {"CumSum", "ReduceSum", "Neg", "Add", "Sub", "Mul", "Div"}
"""Operators for which `range_before` may know the range of an input."""


def range_before(argument: Argument, behind: Range) -> Range | None:
    """Return the values of an input for which its node's output lies in `behind`; None if they are unknown.

    If two operands both come from inputs, each gets half of the range.
    """
    node, index = argument.node, argument.index
    # A weak range is no requirement.
    if behind.weak or behind.pattern or behind.words:
        return None
    if node.op_type in _SAME:
        return behind
    if node.op_type in ("CumSum", "ReduceSum"):
        return _summand(argument, behind) if index == 0 else None
    if node.op_type == "Neg":
        return replace(behind, low=-behind.high, high=-behind.low)
    # Other operators have no inverse here.
    if node.op_type not in ("Add", "Sub", "Mul", "Div") or len(node.input) != 2:
        return None
    other = argument.facts.value(node.input[1 - index])
    if other is not None and other.dtype.kind not in "iuf":
        return None
    if other is None or not other.size:
        # Each operand gets half, so that the result stays in the range.
        return _half(node, index, behind)
    return _with_constant(node, index, behind, float(other.min()), float(other.max()))


def _summand(argument: Argument, behind: Range) -> Range:
    shape = argument.shape()
    count = max(shape, default=1) if shape else 8
    return replace(behind, low=0, high=max(1, behind.high // max(1, count)))


def _half(node: NodeProto, index: int, behind: Range) -> Range | None:
    middle = behind.high // 2
    if node.op_type == "Add":
        least = max(0, ceil(behind.low / 2))
        return replace(behind, low=least, high=max(least, middle) if least else middle)
    if node.op_type == "Sub" and index == 0:
        return replace(behind, low=middle + 1)
    if node.op_type == "Sub":
        return replace(behind, low=0, high=middle)
    if node.op_type == "Div":
        return behind if index == 0 else Range(1, 1)
    return None


def _with_constant(node: NodeProto, index: int, behind: Range, least: float, most: float) -> Range | None:
    low, high = behind.low, behind.high
    if node.op_type == "Add":
        low, high = low - least, high - most
    elif node.op_type == "Sub":
        low, high = (low + most, high + least) if index == 0 else (most - high, least - low)
    elif node.op_type == "Mul" and least > 0:
        low, high = ceil(low / least), floor(high / most)
    elif node.op_type == "Div" and least > 0 and index == 0:
        low, high = low * most, high * least + least - 1
    else:
        return None
    return replace(behind, low=low, high=high) if low <= high else None
