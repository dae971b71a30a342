"""Which axes of a Reshape's input go into which axis of its output.

A Reshape keeps the row-major order of the elements. So at the frozen sizes the axes of both sides, read from the
front, meet wherever their products are equal, and between two such cuts the input's axes are the output's in other
groups. What this leaves open is where an axis of length 1 goes, and how a dynamic axis is split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from itertools import product as combinations
from math import gcd

from .domain import Assignments, Dim, merged_axis

__all__ = ["Interpretation", "interpretations"]

_MOST = 12
"""Meanings above which one is not looked for by trying."""


@dataclass(frozen=True)
class Interpretation:
    """The output's axes; with `order`, of which a Reshape gives those at these places, to be transposed then."""

    dims: tuple[Dim, ...]
    order: tuple[int, ...] | None = None


@dataclass
class _OutputAxis:
    """One axis of the output: what it consists of so far."""

    size: int
    factors: list[Dim] = field(default_factory=list)


class _Misaligned(Exception):
    """The axes cannot be told to meet."""


def interpretations(
    given: Sequence[Dim], frozen: Sequence[int], free: int | None, assignments: Assignments
) -> list[Interpretation]:
    """Return what the output's axes may be, likeliest first; empty if that cannot be told.

    `given` are the input's axes, `frozen` the output's lengths at the frozen sizes, `free` the axis that the
    model itself left open with a -1.
    """
    if 0 in frozen or any(0 in dim.sizes for dim in given):
        return []
    factors = _merge_fixed(
        [(factor, axis) for axis, dim in enumerate(given) for factor in dim.flat_factors()], assignments
    )
    found: list[Interpretation] = []
    # A dynamic axis that is split, and no -1 says into what: as many windows as there are, or windows as large.
    for grows in (0,) if free is not None or not any(factor.varies for factor, _ in factors) else (0, 1):
        try:
            found += islice(_Alignment(factors, frozen, free, assignments, grows).interpretations(), _MOST)
        except _Misaligned:  # noqa: PERF203
            continue
    return list(dict.fromkeys(found))


def _merge_fixed(factors: list[tuple[Dim, int]], assignments: Assignments) -> list[tuple[Dim, int]]:
    """Lay neighbouring axes of fixed lengths together: how they were cut does not matter."""
    found: list[tuple[Dim, int]] = []
    long_axes = -1  # where the last fixed length stands, if nothing but ones came since
    for dim, axis in factors:
        if dim.varies:
            long_axes = -1
        elif dim.frozen > 1:
            if long_axes >= 0:
                before = found[long_axes][0].frozen
                del found[long_axes:]
                dim = assignments.fixed(before * dim.frozen)
            long_axes = len(found)
        found.append((dim, axis))
    return found


class _Alignment:
    def __init__(
        self,
        factors: list[tuple[Dim, int]],
        frozen: Sequence[int],
        free: int | None,
        assignments: Assignments,
        grows: int,
    ) -> None:
        self._grows = grows
        self._leaves = factors
        self._frozen = list(frozen)
        self._free = free
        self._worlds = assignments
        self._slots = [_OutputAxis(size) for size in frozen]
        # At each cut: the leaves of length 1, with the axis they come from, and the output's axes of length 1.
        self._cuts: list[tuple[list[tuple[Dim, int]], list[int]]] = []
        self._split: set[int] = set()
        self._align()

    def _align(self) -> None:
        """Lay the leaves that are longer than 1 into the slots, and gather the others at the cuts between these."""
        queue = list(self._leaves)

        def ones() -> list[tuple[Dim, int]]:
            found = []
            while queue and queue[0][0].frozen == 1:
                found.append(queue.pop(0))
            return found

        waiting: list[int] = []
        for axis_out, slot in enumerate(self._slots):
            if slot.size == 1:
                waiting.append(axis_out)
                continue
            self._cuts.append((ones(), waiting))
            waiting = []
            need = slot.size
            while need > 1:
                for dim, _ in ones():
                    slot.factors.append(dim)
                if not queue:
                    raise _Misaligned
                dim, axis = queue.pop(0)
                if need % dim.frozen == 0:
                    slot.factors.append(dim)
                    need //= dim.frozen
                    continue
                common = gcd(dim.frozen, need)
                if common == 1:
                    raise _Misaligned
                first, rest = self._split_factor(dim, common, axis_out)
                slot.factors.append(first)
                self._split.add(axis_out)
                need //= common
                queue.insert(0, (rest, axis))
        self._cuts.append((ones(), waiting))
        if queue:
            raise _Misaligned

    def _split_factor(self, dim: Dim, common: int, axis_out: int) -> tuple[Dim, Dim]:
        """Split an axis into one of `share` and the rest; of a dynamic one, the part that the model left open grows.

        If it left none open, the first grows, or the second with `grows` 1.
        """
        rest = dim.frozen // common
        if not dim.varies:
            return self._worlds.fixed(common), self._worlds.fixed(rest)
        first = self._grows == 0 if self._free is None else self._free == axis_out
        kept = rest if first else common
        if any(size % kept for size in dim.sizes):
            raise _Misaligned
        grown = Dim(tuple(size // kept for size in dim.sizes))
        return (grown, self._worlds.fixed(kept)) if first else (self._worlds.fixed(kept), grown)

    def interpretations(self) -> list[Interpretation]:
        """Give every way of placing the dynamic axes of length 1, likeliest first."""
        ways = [self._placements(index) for index in range(len(self._cuts))]
        found = []
        for chosen in islice(combinations(*ways), _MOST):
            slots = [list(slot.factors) for slot in self._slots]
            for way in chosen:
                for dim, axis_out, front in way:
                    slots[axis_out].insert(0 if front else len(slots[axis_out]), dim)
            dims = tuple(
                self._axis(slot.size, factors) for slot, factors in zip(self._slots, slots, strict=True)
            )
            found.append(Interpretation(dims))
        return list(dict.fromkeys([*found, *self._transposed()]))

    def _transposed(self) -> Iterator[Interpretation]:
        """Give the ways in which the one dynamic axis of length 1 goes past others, as [1, n] becomes [n, 1]."""
        moving = [
            (cut, dim) for cut, (factors, _) in enumerate(self._cuts) for dim, _ in factors if dim.varies
        ]
        if len(moving) != 1 or self._cuts[moving[0][0]][1]:
            return
        cut, dim = moving[0]
        long_axes = [axis_out for axis_out, size in enumerate(self._frozen) if size != 1]
        for axis_out in (axis_out for axis_out, size in enumerate(self._frozen) if size == 1):
            rest = [other for other in range(len(self._frozen)) if other != axis_out]
            at = rest.index(long_axes[cut]) if cut < len(long_axes) else len(rest)
            dims = [self._axis(slot.size, slot.factors) for slot in self._slots]
            dims[axis_out] = dim
            yield Interpretation(tuple(dims), (*rest[:at], axis_out, *rest[at:]))

    def _axis(self, size: int, factors: list[Dim]) -> Dim:
        return merged_axis(factors, self._worlds.count) if factors else self._worlds.fixed(size)

    def _placements(self, index: int) -> list[list[tuple[Dim, int, bool]]]:
        """Return the ways to place the leaves of one cut: each a list of leaf, output axis, and whether in front."""
        factors, places = self._cuts[index]
        moving = [(dim, axis) for dim, axis in factors if dim.varies]
        if not moving:
            return [[]]
        if len(factors) == len(places):
            each = [
                (dim, axis_out, False)
                for (dim, _), axis_out in zip(factors, places, strict=True)
                if dim.varies
            ]
            # A -1 beside them may take them all in: [1, -1, 4], then a Squeeze.
            if self._free is None or self._frozen[self._free] == 1:
                return [each]
            taken = self._merges([dim for dim, _ in moving], index)
            return [each, *(way for way in taken if way[0][1] == self._free)]
        if len(moving) == len(places):
            return [[(dim, axis_out, False) for (dim, _), axis_out in zip(moving, places, strict=True)]]
        if len(moving) > 1:
            return (
                self._merges([dim for dim, _ in moving], index)
                if not places
                else self._several(moving, places)
            )
        dim, axis = moving[0]
        if not places:
            return self._merges([dim], index)
        order = sorted(places, key=lambda axis_out: (axis_out != self._free, axis_out != axis, axis_out))
        return [[(dim, axis_out, False)] for axis_out in order] + self._merges([dim], index)

    def _several(self, moving: list[tuple[Dim, int]], places: list[int]) -> list[list[tuple[Dim, int, bool]]]:
        if len(moving) > len(places):
            raise _Misaligned
        same = all(axis in places for _, axis in moving)
        chosen = [axis for _, axis in moving] if same else places[: len(moving)]
        return [[(dim, axis_out, False) for (dim, _), axis_out in zip(moving, chosen, strict=True)]]

    def _merges(self, dims: list[Dim], index: int) -> list[list[tuple[Dim, int, bool]]]:
        """Lay leaves into the axis behind the cut or the one before it.

        Into the one behind if that was split off a longer axis, as heads are off features; else into the one
        before, as steps of time take the batch in; at the front there is only the one behind.
        """
        long_axes = [axis_out for axis_out, size in enumerate(self._frozen) if size != 1]
        before = long_axes[index - 1] if index else None
        after = long_axes[index] if index < len(long_axes) else None
        ways = []
        if after is not None:
            ways.append([(dim, after, True) for dim in reversed(dims)])
        if before is not None:
            ways.append([(dim, before, False) for dim in dims])
        last = after is not None and after == len(self._frozen) - 1
        if len(ways) == 2 and (last or before == self._free) and after not in self._split:
            ways.reverse()
        if not ways:
            raise _Misaligned
        return ways
