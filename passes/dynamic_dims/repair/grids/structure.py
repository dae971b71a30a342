"""The feature maps along the axes of a constant: a table has one segment for each, with an axis for rows and one for columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from ..domain import Array, Assignments, Dim

__all__ = ["Segment", "image_length", "segments"]


@dataclass(frozen=True)
class Segment:
    """The part of a table that belongs to one feature map, with each of its factors along an axis of its own.

    `axes` has a dim for an axis of the feature map, and a number for an axis of columns.
    """

    array: Array
    axes: tuple[Dim | int, ...]
    own: tuple[int, ...]
    """The axes that the constant itself has; the others are factors of a length that changes."""

    @property
    def map_axes(self) -> list[int]:
        """Return the axes of the feature map, the rows first."""
        return [index for index, axis in enumerate(self.axes) if isinstance(axis, Dim)]

    def dim(self, axis: int) -> Dim:
        """Return the dim of an axis of the feature map."""
        dim = self.axes[axis]
        assert isinstance(dim, Dim)
        return dim


def segments(array: Array, lengths: Mapping[int, Dim], *, turned: bool = False) -> list[Segment] | None:
    """Return the segments of a table whose axes `lengths` change; None if two of them are joined of several maps.

    With `turned`, the table goes through a feature map column by column, although the value it is combined with goes row by
    row. Then it is None too where both orders are the same.
    """
    joined = [axis for axis, dim in lengths.items() if len(dim.flat_terms()) > 1]
    if len(joined) > 1:
        return None
    along = joined[0] if joined else next(iter(lengths))
    segments_so_far, start = [], 0
    for term in lengths[along].flat_terms():
        rows = array.take(range(start, start + term.frozen), along)
        start += term.frozen
        if turned:
            factors = _turned(term.flat_factors())
            if factors is None:
                return None
            term = Dim(term.sizes, factors)
        axes, own = _axes(rows.shape, {**lengths, along: term})
        shape = [axis.frozen if isinstance(axis, Dim) else axis for axis in axes]
        segments_so_far.append(Segment(rows.reshape(shape), axes, own))
    return segments_so_far


def _turned(factors: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """Return factors with the two axes of a feature map exchanged, None if there are not two."""
    varying = [at for at, factor in enumerate(factors) if factor.varies]
    if len(varying) != 2:
        return None
    turned = [*factors]
    first, second = varying
    turned[first], turned[second] = factors[second], factors[first]
    return tuple(turned)


def _axes(shape: Sequence[int], lengths: Mapping[int, Dim]) -> tuple[tuple[Dim | int, ...], tuple[int, ...]]:
    """Return the axes of a segment, and the indices of those that the constant itself has."""
    axes: list[Dim | int] = []
    own: list[int] = []
    for axis, size in enumerate(shape):
        if axis not in lengths:
            own.append(len(axes))
            axes.append(size)
            continue
        factors = lengths[axis].flat_factors()
        assert prod(factor.frozen for factor in factors) == size
        axes += [factor if factor.varies else factor.frozen for factor in factors]
    return tuple(axes), tuple(own)


def image_length(assignments: Assignments, dim: Dim) -> Dim | None:
    """Return the length of the input's axis that an axis of a feature map follows; None if there is none, or several.

    A feature map is as long as the image, divided by its stride and rounded, at every sample size. Sample sizes are whole
    strides apart for most strides, so the rounding is the same for all of them.
    """
    fitting = []
    for sizes in assignments.sizes.values():
        stride = round(sizes[2] / dim.sizes[2]) if all(dim.sizes) else 0
        # A batch is no axis of the image, even if a length happens to follow it.
        if sizes[1] == sizes[0] or sizes[3] != sizes[0] or not stride:
            continue
        rests = [size - n * stride for size, n in zip(sizes, dim.sizes, strict=True)]
        if all(abs(rest) <= stride for rest in rests):
            fitting.append((len(set(rests)) == 1, Dim(sizes)))
    # Two images can fit by rounding, so one whose rest is equal at all sizes decides.
    alike = [image for is_alike, image in fitting if is_alike] or [image for _, image in fitting]
    return alike[0] if len(alike) == 1 else None
