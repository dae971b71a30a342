"""The interpretations of a Reshape: the axes of its output, given those of its input and the frozen shapes.

A Reshape keeps the row-major order of the elements. Read both shapes from the front, at the frozen sizes. A boundary
between axes is common to both wherever the products of the lengths before it are equal. Between two common boundaries,
the output's axes have the same factors as the input's, in another grouping (`align`). One question stays open for a
varying axis of frozen length 1. It may become any output axis of length 1, or merge into a neighbour. The frozen shapes
are the same in all these cases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import gcd

from .domain import Dim, fixed, merged_axis

__all__ = ["Alignment", "Factor", "Interpretation", "Misaligned", "align", "interpretations", "merge_fixed"]

Factor = tuple[Dim, int]
"""A factor of an axis of the input, and the index of that axis."""


class Misaligned(Exception):
    """An error: the lengths of the two sides lack common factors that an alignment needs."""


@dataclass
class Alignment:
    """The factors of each output axis, and the open choices at the boundaries between axes longer than 1."""

    axes: list[list[Dim]]
    """The factors of each axis of the output; none yet for an axis of length 1."""
    boundaries: list[tuple[list[Factor], list[int]]] = field(default_factory=list)
    """At each boundary, the factors of length 1, and the output's axes of length 1."""
    split: set[int] = field(default_factory=set)
    """The output's axes that begin or end with a part of a split factor."""


def merge_fixed(factors: Sequence[Factor]) -> list[Factor]:
    """Merge neighbouring factors of fixed length into one: how the axis was split before does not matter."""
    merged: list[Factor] = []
    last_fixed = -1  # the index of the last fixed factor longer than 1, -1 after a varying one
    for dim, axis in factors:
        if dim.varies:
            last_fixed = -1
        elif dim.frozen > 1:
            if last_fixed >= 0:
                before = merged[last_fixed][0].frozen
                del merged[last_fixed:]
                dim = fixed(before * dim.frozen)
            last_fixed = len(merged)
        merged.append((dim, axis))
    return merged


def align(
    factors: Sequence[Factor], frozen: Sequence[int], free: int | None, *, second_varies: bool
) -> Alignment:
    """Assign the factors longer than 1 to the output's axes of the lengths `frozen`, splitting them where needed.

    A varying factor that is split has one varying part. That is the part in the axis `free`, which the model left open
    with -1. Otherwise it is the first part, or the second with `second_varies`. Raises Misaligned.
    """
    alignment = Alignment([[] for _ in frozen])
    queue = list(factors)

    def ones() -> list[Factor]:
        consumed = []
        while queue and queue[0][0].frozen == 1:
            consumed.append(queue.pop(0))
        return consumed

    waiting: list[int] = []
    for index, size in enumerate(frozen):
        if size == 1:
            waiting.append(index)
            continue
        alignment.boundaries.append((ones(), waiting))
        waiting = []
        need = size
        while need > 1:
            alignment.axes[index].extend(dim for dim, _ in ones())
            if not queue:
                raise Misaligned
            dim, axis = queue.pop(0)
            if need % dim.frozen == 0:
                alignment.axes[index].append(dim)
                need //= dim.frozen
                continue
            share = gcd(dim.frozen, need)
            if share == 1:
                raise Misaligned
            first_varies = not second_varies if free is None else free == index
            first, rest = _split(dim, share, first_varies=first_varies)
            alignment.axes[index].append(first)
            alignment.split.add(index)
            need //= share
            queue.insert(0, (rest, axis))
    alignment.boundaries.append((ones(), waiting))
    if queue:
        raise Misaligned
    return alignment


def _split(dim: Dim, share: int, *, first_varies: bool) -> tuple[Dim, Dim]:
    """Split an axis into one of the frozen length `share` and the rest; one part of a varying axis stays fixed."""
    rest = dim.frozen // share
    if not dim.varies:
        return fixed(share), fixed(rest)
    fixed_size = rest if first_varies else share
    if any(size % fixed_size for size in dim.sizes):
        raise Misaligned
    varying = Dim(tuple(size // fixed_size for size in dim.sizes))
    return (varying, fixed(fixed_size)) if first_varies else (fixed(fixed_size), varying)


_MAX_INTERPRETATIONS = 12

Placement = list[tuple[Dim, int, bool]]
"""One place for each varying factor at a boundary: factor, axis of the output, whether in front of the axis's factors."""


@dataclass(frozen=True)
class Interpretation:
    """The axes of the output.

    With an `order`, a Reshape outputs the axes in that order, and a Transpose puts them in theirs.
    """

    dims: tuple[Dim, ...]
    order: tuple[int, ...] | None = None


def interpretations(dims: Sequence[Dim], frozen: Sequence[int], free: int | None) -> list[Interpretation]:
    """Return the possible axes of a Reshape's output, likeliest first; empty if the sides cannot be aligned.

    `dims` are the input's axes, `frozen` the output's lengths in the source model, `free` the axis of the output that
    the model gives as -1.
    """
    # With a length of 0 all products are 0, so boundaries cannot be found.
    if 0 in frozen or any(0 in dim.sizes for dim in dims):
        return []
    flat = [(factor, axis) for axis, dim in enumerate(dims) for factor in dim.flat_factors()]
    factors = merge_fixed(flat)
    readings: list[Interpretation] = []
    # Without a -1, a varying axis that is split may become more windows, or windows of more elements.
    open_split = free is None and any(factor.varies for factor, _ in factors)
    for second_varies in (False, True) if open_split else (False,):
        try:
            alignment = align(factors, frozen, free, second_varies=second_varies)
            readings += _Placer(alignment, frozen, free).interpretations()[:_MAX_INTERPRETATIONS]
        except Misaligned:  # noqa: PERF203
            continue
    if not readings and any(dim.factors for dim in dims):
        # No part of the output is made of whole axes, as areas of a feature map: an axis is then one row of cells.
        return interpretations([Dim(dim.sizes) for dim in dims], frozen, free)
    return list(dict.fromkeys(readings))


@dataclass(frozen=True)
class _Placer:
    """Places the varying factors of frozen length 1 that one alignment leaves at its boundaries."""

    alignment: Alignment
    frozen: Sequence[int]
    free: int | None

    def interpretations(self) -> list[Interpretation]:
        """Return an interpretation for every way of placing the factors, likeliest first. Raises Misaligned."""
        ways = [self._placements(index) for index in range(len(self.alignment.boundaries))]
        readings = []
        for chosen in islice(product(*ways), _MAX_INTERPRETATIONS):
            axes = [list(factors) for factors in self.alignment.axes]
            for placement in chosen:
                for dim, axis, front in placement:
                    axes[axis].insert(0 if front else len(axes[axis]), dim)
            readings.append(Interpretation(tuple(map(self._axis, self.frozen, axes))))
        return list(dict.fromkeys([*readings, *self._transposed()]))

    def _axis(self, size: int, factors: Sequence[Dim]) -> Dim:
        return merged_axis(factors) if factors else fixed(size)

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
        for unit_axis in (axis for axis, size in enumerate(self.frozen) if size == 1):
            rest = [axis for axis in range(len(self.frozen)) if axis != unit_axis]
            position = rest.index(long_axes[boundary]) if boundary < len(long_axes) else len(rest)
            dims = list(map(self._axis, self.frozen, self.alignment.axes))
            dims[unit_axis] = dim
            yield Interpretation(tuple(dims), (*rest[:position], unit_axis, *rest[position:]))

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
        if not ones:
            return self._merged([dim for dim, _ in varying], boundary)
        if len(varying) > len(ones):
            raise Misaligned
        if len(varying) > 1:  # at the same indices as in the input, else the first ones
            same = all(axis in ones for _, axis in varying)
            chosen = [axis for _, axis in varying] if same else ones[: len(varying)]
            return [[(dim, one, False) for (dim, _), one in zip(varying, chosen, strict=True)]]
        dim, axis = varying[0]
        order = sorted(ones, key=lambda one: (one != self.free, one != axis, one))
        return [[(dim, one, False)] for one in order] + self._merged([dim], boundary)

    def _merged(self, dims: list[Dim], boundary: int) -> list[Placement]:
        """Merge factors into the axis after the boundary or the one before it, likeliest first.

        The axis after comes first if a longer axis was split into it, for example heads split off features. Otherwise the
        axis before comes first, for example time steps that take in the batch. At the front there is only the axis after.
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
