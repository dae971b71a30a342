"""Alignment of a Reshape's input with its output: which factors of the input make up which axis of the output.

A Reshape keeps the row-major order of the elements. So at the frozen sizes the boundaries between axes on both sides,
read from the front, coincide wherever the products of the lengths before them are equal, and between two such
boundaries the input's factors are the output's, grouped in another way. Factors of length 1 do not change a product;
those at a boundary are left for `reshape_alignment` to place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from .domain import Assignments, Dim

__all__ = ["Alignment", "Factor", "Misaligned", "align", "merge_fixed"]

Factor = tuple[Dim, int]
"""A factor of an axis of the input, and the index of that axis."""


class Misaligned(Exception):
    """The lengths of the two sides have no common factors where they would have to."""


@dataclass
class Alignment:
    """The factors of each output axis, and what is open at the boundaries between axes longer than 1."""

    axes: list[list[Dim]]
    """The factors of each axis of the output; none yet for an axis of length 1."""
    boundaries: list[tuple[list[Factor], list[int]]] = field(default_factory=list)
    """At each boundary, the factors of length 1, and the output's axes of length 1."""
    split: set[int] = field(default_factory=set)
    """The output's axes that begin or end with a part of a split factor."""


def merge_fixed(factors: Sequence[Factor], assignments: Assignments) -> list[Factor]:
    """Merge neighbouring factors of fixed length into one: how the axis was split before does not matter."""
    found: list[Factor] = []
    last_fixed = -1  # the index of the last fixed factor longer than 1, -1 after a varying one
    for dim, axis in factors:
        if dim.varies:
            last_fixed = -1
        elif dim.frozen > 1:
            if last_fixed >= 0:
                before = found[last_fixed][0].frozen
                del found[last_fixed:]
                dim = assignments.fixed(before * dim.frozen)
            last_fixed = len(found)
        found.append((dim, axis))
    return found


def align(
    factors: Sequence[Factor],
    frozen: Sequence[int],
    free: int | None,
    assignments: Assignments,
    *,
    second_varies: bool,
) -> Alignment:
    """Assign the factors longer than 1 to the output's axes of the lengths `frozen`, splitting them where needed.

    A varying factor that is split has one varying part: the one in the axis `free`, which the model left open with
    -1, else the first part, or the second with `second_varies`. Raises Misaligned.
    """
    found = Alignment([[] for _ in frozen])
    queue = list(factors)

    def ones() -> list[Factor]:
        taken = []
        while queue and queue[0][0].frozen == 1:
            taken.append(queue.pop(0))
        return taken

    waiting: list[int] = []
    for index, size in enumerate(frozen):
        if size == 1:
            waiting.append(index)
            continue
        found.boundaries.append((ones(), waiting))
        waiting = []
        need = size
        while need > 1:
            found.axes[index].extend(dim for dim, _ in ones())
            if not queue:
                raise Misaligned
            dim, axis = queue.pop(0)
            if need % dim.frozen == 0:
                found.axes[index].append(dim)
                need //= dim.frozen
                continue
            share = gcd(dim.frozen, need)
            if share == 1:
                raise Misaligned
            first_varies = not second_varies if free is None else free == index
            first, rest = _split(dim, share, assignments, first_varies=first_varies)
            found.axes[index].append(first)
            found.split.add(index)
            need //= share
            queue.insert(0, (rest, axis))
    found.boundaries.append((ones(), waiting))
    if queue:
        raise Misaligned
    return found


def _split(dim: Dim, share: int, assignments: Assignments, *, first_varies: bool) -> tuple[Dim, Dim]:
    """Split an axis into one of the frozen length `share` and the rest; one part of a varying axis stays fixed."""
    rest = dim.frozen // share
    if not dim.varies:
        return assignments.fixed(share), assignments.fixed(rest)
    kept = rest if first_varies else share
    if any(size % kept for size in dim.sizes):
        raise Misaligned
    varying = Dim(tuple(size // kept for size in dim.sizes))
    fixed = assignments.fixed(kept)
    return (varying, fixed) if first_varies else (fixed, varying)
