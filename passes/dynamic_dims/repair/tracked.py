"""Numbers that are followed from node to node: coordinates in the image, and indices of cells of a feature map.

A constant beside them may hold a size that no shape shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from .domain import Array, Dim

__all__ = ["ACROSS", "BOTH", "DOWN", "CellIndex", "Tracked", "combined", "over"]

DOWN, ACROSS, BOTH = 1, 2, 3
"""Marks of columns of coordinates: y, x, and numbers that may be either. 0 marks all other numbers."""


@dataclass(frozen=True)
class CellIndex:
    """An index whose axis has these factors, in row-major order; it was divided by the length of `divided`, if that is set."""

    factors: tuple[Dim, ...]
    divided: tuple[Dim, ...] = ()
    dim: Dim | None = None
    """The axis that it counts; None after a division."""

    def suffix(self, number: int) -> int | None:
        """Return where the last factors begin whose lengths multiply to a number in the source model."""
        # Dividing by all factors would make every index 0, which no program does.
        for start in range(1, len(self.factors)):
            if prod(factor.frozen for factor in self.factors[start:]) == number:
                return start
        return None


@dataclass(frozen=True, eq=False)
class Tracked:
    """The marks of a value's columns, if it holds coordinates, and the axes that it counts, if it is an index of cells."""

    marks: Array | None = None
    index: CellIndex | None = None

    def equals(self, other: Tracked) -> bool:
        """Return whether another value is the same to constants beside it."""
        if self.marks is None or other.marks is None:
            return self.marks is other.marks and self.index == other.index
        return np.array_equal(self.marks, other.marks) and self.index == other.index

    def join(self, other: Tracked) -> Tracked:
        """Return a value that is this one or another at run time: the result of an If, or a state of a loop."""
        index = self.index or other.index
        if self.marks is None or other.marks is None:
            return Tracked(other.marks if self.marks is None else self.marks, index)
        marks = [self.marks, other.within(self.marks.shape).marks]
        return Tracked(combined([each for each in marks if each is not None]), index)

    def within(self, shape: Sequence[int | Dim | None] | None) -> Tracked:
        """Return the value with marks for a value of this shape; with other columns, each number may be a coordinate."""
        if self.marks is None or shape is None:
            return self
        lengths = [size.frozen if isinstance(size, Dim) else size for size in shape]
        if len(lengths) == self.marks.ndim and all(
            size in (1, length) for size, length in zip(self.marks.shape, lengths, strict=True)
        ):
            return self
        return Tracked(np.full([1] * len(lengths), BOTH), self.index)

    def stacked(self, axis: int) -> Tracked:
        """Return values of all iterations, along a new axis."""
        return Tracked(None if self.marks is None else np.expand_dims(self.marks, axis), self.index)

    def step(self, axis: int) -> Tracked:
        """Return one step along an axis."""
        return Tracked(None if self.marks is None else np.squeeze(over(self.marks, axis), axis), self.index)


def combined(marks: Sequence[Array]) -> Array:
    """Return the marks of numbers that are combined element by element."""
    together = marks[0] if marks else np.zeros((), np.int64)
    for mark in marks[1:]:
        different = (together != 0) & (mark != 0) & (together != mark)
        together = np.where(different, BOTH, np.maximum(together, mark))
    return np.asarray(together)


def over(mark: Array, axis: int) -> Array:
    """Return marks without a difference along an axis, which keeps the length 1."""
    if mark.shape[axis] == 1:
        return mark
    return np.expand_dims(combined([mark.take(at, axis) for at in range(mark.shape[axis])]), axis)
