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

from .domain import Dim, Worlds, product

__all__ = ["Meaning", "regroupings"]

_MOST = 12
"""Meanings above which one is not looked for by trying."""


@dataclass(frozen=True)
class Meaning:
    """The output's axes; with `order`, of which a Reshape gives those at these places, to be transposed then."""

    dims: tuple[Dim, ...]
    order: tuple[int, ...] | None = None


@dataclass
class _Slot:
    """One axis of the output: what it consists of so far."""

    size: int
    parts: list[Dim] = field(default_factory=list)


class _MisalignedError(Exception):
    """The axes cannot be told to meet."""


def regroupings(
    given: Sequence[Dim], frozen: Sequence[int], free: int | None, worlds: Worlds
) -> list[Meaning]:
    """Return what the output's axes may be, likeliest first; empty if that cannot be told.

    `given` are the input's axes, `frozen` the output's lengths at the frozen sizes, `free` the axis that the
    model itself left open with a -1.
    """
    if 0 in frozen or any(0 in dim.sizes for dim in given):
        return []
    leaves = _pooled([(leaf, axis) for axis, dim in enumerate(given) for leaf in dim.leaves()], worlds)
    found: list[Meaning] = []
    # A dynamic axis that is split, and no -1 says into what: as many windows as there are, or windows as large.
    for grows in (0,) if free is not None or not any(leaf.varies for leaf, _ in leaves) else (0, 1):
        try:
            found += islice(_Regrouping(leaves, frozen, free, worlds, grows).meanings(), _MOST)
        except _MisalignedError:  # noqa: PERF203
            continue
    return list(dict.fromkeys(found))


def _pooled(leaves: list[tuple[Dim, int]], worlds: Worlds) -> list[tuple[Dim, int]]:
    """Lay neighbouring axes of fixed lengths together: how they were cut does not matter."""
    found: list[tuple[Dim, int]] = []
    solid = -1  # where the last fixed length stands, if nothing but ones came since
    for dim, axis in leaves:
        if dim.varies:
            solid = -1
        elif dim.frozen > 1:
            if solid >= 0:
                before = found[solid][0].frozen
                del found[solid:]
                dim = worlds.fixed(before * dim.frozen)
            solid = len(found)
        found.append((dim, axis))
    return found


class _Regrouping:
    def __init__(
        self,
        leaves: list[tuple[Dim, int]],
        frozen: Sequence[int],
        free: int | None,
        worlds: Worlds,
        grows: int,
    ) -> None:
        self._grows = grows
        self._leaves = leaves
        self._frozen = list(frozen)
        self._free = free
        self._worlds = worlds
        self._slots = [_Slot(size) for size in frozen]
        # At each cut: the leaves of length 1, with the axis they come from, and the output's axes of length 1.
        self._cuts: list[tuple[list[tuple[Dim, int]], list[int]]] = []
        self._split: set[int] = set()
        self._lay()

    def _lay(self) -> None:
        """Lay the leaves that are longer than 1 into the slots, and gather the others at the cuts between these."""
        queue = list(self._leaves)

        def ones() -> list[tuple[Dim, int]]:
            found = []
            while queue and queue[0][0].frozen == 1:
                found.append(queue.pop(0))
            return found

        waiting: list[int] = []
        for place, slot in enumerate(self._slots):
            if slot.size == 1:
                waiting.append(place)
                continue
            self._cuts.append((ones(), waiting))
            waiting = []
            need = slot.size
            while need > 1:
                for dim, _ in ones():
                    slot.parts.append(dim)
                if not queue:
                    raise _MisalignedError
                dim, axis = queue.pop(0)
                if need % dim.frozen == 0:
                    slot.parts.append(dim)
                    need //= dim.frozen
                    continue
                share = gcd(dim.frozen, need)
                if share == 1:
                    raise _MisalignedError
                first, rest = self._divide(dim, share, place)
                slot.parts.append(first)
                self._split.add(place)
                need //= share
                queue.insert(0, (rest, axis))
        self._cuts.append((ones(), waiting))
        if queue:
            raise _MisalignedError

    def _divide(self, dim: Dim, share: int, place: int) -> tuple[Dim, Dim]:
        """Split an axis into one of `share` and the rest; of a dynamic one, the part that the model left open grows.

        If it left none open, the first grows, or the second with `grows` 1.
        """
        rest = dim.frozen // share
        if not dim.varies:
            return self._worlds.fixed(share), self._worlds.fixed(rest)
        first = self._grows == 0 if self._free is None else self._free == place
        kept = rest if first else share
        if any(size % kept for size in dim.sizes):
            raise _MisalignedError
        grown = Dim(tuple(size // kept for size in dim.sizes))
        return (grown, self._worlds.fixed(kept)) if first else (self._worlds.fixed(kept), grown)

    def meanings(self) -> list[Meaning]:
        """Give every way of placing the dynamic axes of length 1, likeliest first."""
        ways = [self._ways(index) for index in range(len(self._cuts))]
        found = []
        for chosen in islice(combinations(*ways), _MOST):
            slots = [list(slot.parts) for slot in self._slots]
            for way in chosen:
                for dim, place, front in way:
                    slots[place].insert(0 if front else len(slots[place]), dim)
            dims = tuple(
                self._joined(slot.size, parts) for slot, parts in zip(self._slots, slots, strict=True)
            )
            found.append(Meaning(dims))
        return list(dict.fromkeys([*found, *self._moved()]))

    def _moved(self) -> Iterator[Meaning]:
        """Give the ways in which the one dynamic axis of length 1 goes past others, as [1, n] becomes [n, 1]."""
        moving = [(cut, dim) for cut, (leaves, _) in enumerate(self._cuts) for dim, _ in leaves if dim.varies]
        if len(moving) != 1 or self._cuts[moving[0][0]][1]:
            return
        cut, dim = moving[0]
        solid = [place for place, size in enumerate(self._frozen) if size != 1]
        for place in (place for place, size in enumerate(self._frozen) if size == 1):
            rest = [other for other in range(len(self._frozen)) if other != place]
            at = rest.index(solid[cut]) if cut < len(solid) else len(rest)
            dims = [self._joined(slot.size, slot.parts) for slot in self._slots]
            dims[place] = dim
            yield Meaning(tuple(dims), (*rest[:at], place, *rest[at:]))

    def _joined(self, size: int, parts: list[Dim]) -> Dim:
        return product(parts, self._worlds.count) if parts else self._worlds.fixed(size)

    def _ways(self, index: int) -> list[list[tuple[Dim, int, bool]]]:
        """Return the ways to place the leaves of one cut: each a list of leaf, output axis, and whether in front."""
        leaves, places = self._cuts[index]
        moving = [(dim, axis) for dim, axis in leaves if dim.varies]
        if not moving:
            return [[]]
        if len(leaves) == len(places):
            each = [(dim, place, False) for (dim, _), place in zip(leaves, places, strict=True) if dim.varies]
            # A -1 beside them may take them all in: [1, -1, 4], then a Squeeze.
            if self._free is None or self._frozen[self._free] == 1:
                return [each]
            taken = self._merged([dim for dim, _ in moving], index)
            return [each, *(way for way in taken if way[0][1] == self._free)]
        if len(moving) == len(places):
            return [[(dim, place, False) for (dim, _), place in zip(moving, places, strict=True)]]
        if len(moving) > 1:
            return (
                self._merged([dim for dim, _ in moving], index)
                if not places
                else self._several(moving, places)
            )
        dim, axis = moving[0]
        if not places:
            return self._merged([dim], index)
        order = sorted(places, key=lambda place: (place != self._free, place != axis, place))
        return [[(dim, place, False)] for place in order] + self._merged([dim], index)

    def _several(self, moving: list[tuple[Dim, int]], places: list[int]) -> list[list[tuple[Dim, int, bool]]]:
        if len(moving) > len(places):
            raise _MisalignedError
        same = all(axis in places for _, axis in moving)
        chosen = [axis for _, axis in moving] if same else places[: len(moving)]
        return [[(dim, place, False) for (dim, _), place in zip(moving, chosen, strict=True)]]

    def _merged(self, dims: list[Dim], index: int) -> list[list[tuple[Dim, int, bool]]]:
        """Lay leaves into the axis behind the cut or the one before it.

        Into the one behind if that was split off a longer axis, as heads are off features; else into the one
        before, as steps of time take the batch in; at the front there is only the one behind.
        """
        solid = [place for place, size in enumerate(self._frozen) if size != 1]
        before = solid[index - 1] if index else None
        behind = solid[index] if index < len(solid) else None
        ways = []
        if behind is not None:
            ways.append([(dim, behind, True) for dim in reversed(dims)])
        if before is not None:
            ways.append([(dim, before, False) for dim in dims])
        last = behind is not None and behind == len(self._frozen) - 1
        if len(ways) == 2 and (last or before == self._free) and behind not in self._split:
            ways.reverse()
        if not ways:
            raise _MisalignedError
        return ways
