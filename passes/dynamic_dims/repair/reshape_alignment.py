"""The interpretations of a Reshape: what the axes of its output are, given those of its input and the frozen shapes.

The axes longer than 1 follow from `factor_alignment`. Open is which output axis of length 1 a varying axis of frozen
length 1 becomes, or into which neighbour it is merged: the frozen shapes are equal for all of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product

from .domain import Assignments, Dim, merged_axis
from .factor_alignment import Alignment, Factor, Misaligned, align, merge_fixed

__all__ = ["Interpretation", "interpretations"]

_MAX_INTERPRETATIONS = 12

Placement = list[tuple[Dim, int, bool]]
"""Where the varying factors at one boundary go: factor, axis of the output, and whether in front of its factors."""


@dataclass(frozen=True)
class Interpretation:
    """The axes of the output.

    With an `order`, a Reshape outputs the axes in that order, and a Transpose puts them in theirs.
    """

    dims: tuple[Dim, ...]
    order: tuple[int, ...] | None = None


def interpretations(
    dims: Sequence[Dim], frozen: Sequence[int], free: int | None, assignments: Assignments
) -> list[Interpretation]:
    """Return what the axes of a Reshape's output may be, likeliest first; empty if the sides cannot be aligned.

    `dims` are the input's axes, `frozen` the output's lengths in the source model, `free` the axis of the output that
    the model gives as -1.
    """
    if 0 in frozen or any(0 in dim.sizes for dim in dims):
        return []
    flat = [(factor, axis) for axis, dim in enumerate(dims) for factor in dim.flat_factors()]
    factors = merge_fixed(flat, assignments)
    found: list[Interpretation] = []
    # Without a -1, a varying axis that is split may become more windows, or windows of more elements.
    open_split = free is None and any(factor.varies for factor, _ in factors)
    for second_varies in (False, True) if open_split else (False,):
        try:
            alignment = align(factors, frozen, free, assignments, second_varies=second_varies)
            found += islice(
                _Placer(alignment, frozen, free, assignments).interpretations(), _MAX_INTERPRETATIONS
            )
        except Misaligned:  # noqa: PERF203
            continue
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class _Placer:
    """Places the varying factors of frozen length 1 that one alignment leaves at its boundaries."""

    alignment: Alignment
    frozen: Sequence[int]
    free: int | None
    assignments: Assignments

    def interpretations(self) -> list[Interpretation]:
        """Return an interpretation for every way of placing the factors, likeliest first. Raises Misaligned."""
        ways = [self._placements(index) for index in range(len(self.alignment.boundaries))]
        found = []
        for chosen in islice(product(*ways), _MAX_INTERPRETATIONS):
            axes = [list(factors) for factors in self.alignment.axes]
            for placement in chosen:
                for dim, axis, front in placement:
                    axes[axis].insert(0 if front else len(axes[axis]), dim)
            found.append(Interpretation(tuple(map(self._axis, self.frozen, axes))))
        return list(dict.fromkeys([*found, *self._transposed()]))

    def _axis(self, size: int, factors: Sequence[Dim]) -> Dim:
        return merged_axis(factors, self.assignments.count) if factors else self.assignments.fixed(size)

    def _transposed(self) -> Iterator[Interpretation]:
        """Yield the ways in which the one such factor moves past longer axes, as [1, n] becomes [n, 1]."""
        boundaries = self.alignment.boundaries
        varying = [
            (index, dim) for index, (factors, _) in enumerate(boundaries) for dim, _ in factors if dim.varies
        ]
        if len(varying) != 1 or boundaries[varying[0][0]][1]:
            return
        boundary, dim = varying[0]
        long_axes = [axis for axis, size in enumerate(self.frozen) if size != 1]
        for one in (axis for axis, size in enumerate(self.frozen) if size == 1):
            rest = [axis for axis in range(len(self.frozen)) if axis != one]
            position = rest.index(long_axes[boundary]) if boundary < len(long_axes) else len(rest)
            dims = list(map(self._axis, self.frozen, self.alignment.axes))
            dims[one] = dim
            yield Interpretation(tuple(dims), (*rest[:position], one, *rest[position:]))

    def _placements(self, boundary: int) -> list[Placement]:
        """Return the ways to place the varying factors at one boundary, likeliest first."""
        factors, ones = self.alignment.boundaries[boundary]
        varying = [(dim, axis) for dim, axis in factors if dim.varies]
        if not varying:
            return [[]]
        if len(factors) == len(ones):
            each = [(dim, one, False) for (dim, _), one in zip(factors, ones, strict=True) if dim.varies]
            # A -1 beside them may take them all in, as in [1, -1, 4] before a Squeeze.
            if self.free is None or self.frozen[self.free] == 1:
                return [each]
            merged = self._merged([dim for dim, _ in varying], boundary)
            return [each, *(placement for placement in merged if placement[0][1] == self.free)]
        if len(varying) == len(ones):
            return [[(dim, one, False) for (dim, _), one in zip(varying, ones, strict=True)]]
        if len(varying) > 1:
            if not ones:
                return self._merged([dim for dim, _ in varying], boundary)
            return self._several(varying, ones)
        dim, axis = varying[0]
        if not ones:
            return self._merged([dim], boundary)
        order = sorted(ones, key=lambda one: (one != self.free, one != axis, one))
        return [[(dim, one, False)] for one in order] + self._merged([dim], boundary)

    def _several(self, varying: list[Factor], ones: list[int]) -> list[Placement]:
        """Place several factors into more axes of length 1: at the same indices as in the input, else the first ones."""
        if len(varying) > len(ones):
            raise Misaligned
        same = all(axis in ones for _, axis in varying)
        chosen = [axis for _, axis in varying] if same else ones[: len(varying)]
        return [[(dim, one, False) for (dim, _), one in zip(varying, chosen, strict=True)]]

    def _merged(self, dims: list[Dim], boundary: int) -> list[Placement]:
        """Merge factors into the axis after the boundary or the one before it, likeliest first.

        After it if that axis was split off a longer one, as heads are off features; else before it, as time steps
        take the batch in. At the front there is only the axis after it.
        """
        long_axes = [axis for axis, size in enumerate(self.frozen) if size != 1]
        before = long_axes[boundary - 1] if boundary else None
        after = long_axes[boundary] if boundary < len(long_axes) else None
        placements: list[Placement] = []
        if after is not None:
            placements.append([(dim, after, True) for dim in reversed(dims)])
        if before is not None:
            placements.append([(dim, before, False) for dim in dims])
        last = after is not None and after == len(self.frozen) - 1
        prefer_before = (last or before == self.free) and after not in self.alignment.split
        if len(placements) == 2 and prefer_before:
            placements.reverse()
        if not placements:
            raise Misaligned
        return placements
