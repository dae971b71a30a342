"""The columns of a table: along which axes of the feature map each one changes, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..domain import Array
from .formula import columns_of
from .structure import Segment

__all__ = ["Columns", "columns_in"]


@dataclass(frozen=True)
class Columns:
    """The columns of one segment, each an element of an array that has length 1 along the axes of the feature map.

    `follows` says for each axis of the map which columns change along it, and `slopes` by how much from row to row.
    `first` are the numbers at position 0.
    """

    segment: Segment
    first: Array
    follows: tuple[Array, ...]
    slopes: tuple[Array, ...]

    def length(self, role: int) -> int:
        """Return the length of an axis of the feature map."""
        return self.segment.dim(self.segment.map_axes[role]).frozen

    @property
    def is_affine(self) -> bool:
        """Whether each column changes along one axis at most, by the same amount from row to row, up to rounding."""
        if any((a & b).any() for i, a in enumerate(self.follows) for b in self.follows[i + 1 :]):
            return False
        numbers = self.segment.array.astype(np.float64)
        line = self.first
        for axis, slope in zip(self.segment.map_axes, self.slopes, strict=True):
            along = np.ones(numbers.ndim, np.int64)
            along[axis] = numbers.shape[axis]
            line = line + np.arange(numbers.shape[axis]).reshape(along) * slope
        return bool((np.abs(numbers - line) <= self.tolerance).all())

    @property
    def tolerance(self) -> float:
        """Return how far a number may be from its law."""
        return _tolerance(self.segment.array)


def columns_in(parts: Sequence[Segment]) -> list[Columns] | None:
    """Return the columns of each segment; None if the feature maps have different axes, or numbers that are not finite.

    A map with one row does not show which columns follow the rows, so these are the columns of the other maps that do.
    """
    if len({len(part.map_axes) for part in parts}) != 1:
        return None
    if any(not np.isfinite(part.array.astype(np.float64)).all() for part in parts):
        return None
    segment_columns = [_of_segment(part) for part in parts]
    for role in range(len(parts[0].map_axes)):
        shown = [_shared(columns.follows[role], columns.segment.own) for columns in segment_columns]
        pattern = np.logical_or.reduce(shown)
        segment_columns = [_completed(columns, role, pattern) for columns in segment_columns]
    return segment_columns


def _of_segment(part: Segment) -> Columns:
    numbers = part.array.astype(np.float64)
    maps = part.map_axes
    start = tuple(slice(0, 1) if axis in maps else slice(None) for axis in range(numbers.ndim))
    first = numbers[start]
    rounding = _tolerance(part.array)
    follows, slopes = [], []
    for axis in maps:
        others = tuple(other for other in maps if other != axis)
        distance = np.abs(numbers - numbers.take([0], axis)).max(axis=(axis, *others), keepdims=True)
        changes = distance > rounding
        follows.append(changes)
        end = tuple(slice(-1, None) if at == axis else cut for at, cut in enumerate(start))
        # A map with one row has no step at all, and must not divide by 0.
        steps = max(part.dim(axis).frozen - 1, 1)
        slopes.append(np.where(changes, (numbers[end] - first) / steps, 0.0))
    return Columns(part, first, tuple(follows), tuple(slopes))


def _tolerance(array: Array) -> float:
    """Return eight times the rounding of the largest number."""
    eps = float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0.0
    return 8 * eps * float(np.abs(array.astype(np.float64)).max(initial=0.0))


def _shared(follows: Array, own: tuple[int, ...]) -> Array:
    """Return which columns of the constant follow an axis for any anchor of the feature map."""
    anchors = tuple(axis for axis in range(follows.ndim) if axis not in own)
    return np.asarray(follows.any(axis=anchors))


def _completed(columns: Columns, role: int, pattern: Array) -> Columns:
    if columns.length(role) > 1:
        return columns
    shape = [
        size if axis in columns.segment.own else 1
        for axis, size in enumerate(columns_of(columns.segment.axes))
    ]
    follows = np.broadcast_to(pattern.reshape(shape), columns.first.shape)
    return Columns(
        columns.segment,
        columns.first,
        tuple(follows if at == role else each for at, each in enumerate(columns.follows)),
        columns.slopes,
    )
