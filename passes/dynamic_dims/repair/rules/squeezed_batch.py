"""Squeeze and Gather that take the axis of a batch of one away, and Unsqueeze that brings it back.

All three keep the elements in their order, so they are Reshapes, and the batch is laid with the axis beside it
for as long as the network works on what it takes for a single item.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..domain import Dim, Value
from ..node_context import Place
from ..reshape_alignment import regroupings
from .reshape import write

__all__ = ["TAKERS", "item", "squeeze", "unsqueeze"]

TAKERS = frozenset({"Squeeze", "Gather"})
"""What takes a batch away, until it is made a Reshape."""


def squeeze(place: Place) -> list[Value] | None:
    """Lay a batch that is squeezed away with the axis beside it."""
    x = place.input(0)
    dims = x.known if x is not None else None
    if x is None or dims is None:
        return None
    ones = [axis for axis, dim in enumerate(dims) if dim.frozen == 1]
    axes = _axes(place, len(dims), ones)
    if axes is None or any(dims[axis].frozen != 1 for axis in axes):
        return None
    return _without(place, x, dims, axes)


def item(place: Place) -> list[Value] | None:
    """Lay a batch with the axis beside it where its one item is taken by its number, 0."""
    x, index = place.input(0), place.numbers(1)
    dims = x.known if x is not None else None
    if x is None or not dims or index is None or index.size != 1 or index.item() not in (0, -1):
        return None
    axis = place.attributes.get("axis", 0) % len(dims)
    if dims[axis].frozen != 1 or not place.worlds.carries_batch(dims[axis]):
        return None
    if not index.ndim:
        return _without(place, x, dims, [axis])
    place.snapshot()
    place.rw.rename("Identity")
    place.rw.drop("axis")
    place.set_input(1, "", f"of one item, item {index.item()} is all of {place.name_of(dims[axis])}")
    return [Value(x.dtype, dims)]


def unsqueeze(place: Place) -> list[Value] | None:
    """Let an axis that is brought in be the batch that was laid with the axis behind it."""
    x = place.input(0)
    dims = x.known if x is not None else None
    if x is None or dims is None or not any(_hides_batch(dim, place) for dim in dims):
        return None
    given = place.numbers(1)
    axes = given.tolist() if given is not None else place.attributes.get("axes")
    if not axes:
        return None
    rank = len(dims) + len(axes)
    new = {axis % rank for axis in axes}
    rest = iter(dims)
    as_is = tuple(place.worlds.fixed(1) if axis in new else next(rest) for axis in range(rank))
    frozen = [dim.frozen for dim in as_is]
    ways = [
        meaning.dims
        for meaning in regroupings(dims, frozen, None, place.worlds)
        if meaning.order is None and any(meaning.dims[axis].varies for axis in new)
    ]
    ways.append(as_is)
    pattern = ("Unsqueeze", tuple(dim.sizes for dim in dims), tuple(frozen))
    wanted = ways[place.choices.ask(place.label, pattern, len(ways))]
    return None if wanted == as_is else _write(place, x, dims, wanted)


def _hides_batch(dim: Dim, place: Place) -> bool:
    return any(leaf.frozen == 1 and place.worlds.carries_batch(leaf) for leaf in dim.leaves() if dim.parts)


def _axes(place: Place, rank: int, default: list[int]) -> list[int] | None:
    """Return the axes a Squeeze takes away, None if they are not known."""
    given = place.numbers(1)
    if given is None and place.rw.input(1):
        return None
    axes = given.tolist() if given is not None else place.attributes.get("axes")
    return default if axes is None else [axis % rank for axis in axes]


def _without(place: Place, x: Value, dims: Sequence[Dim], axes: Collection[int]) -> list[Value] | None:
    if not any(place.worlds.carries_batch(dims[axis]) for axis in axes):
        return None
    frozen = [dim.frozen for axis, dim in enumerate(dims) if axis not in axes]
    ways = [
        meaning.dims for meaning in regroupings(dims, frozen, None, place.worlds) if meaning.order is None
    ]
    if not ways:
        place.block("it drops the batch, and no axis is left that it could be laid with", 1)
    pattern = (place.node.op_type, tuple(dim.sizes for dim in dims), tuple(frozen))
    return _write(place, x, dims, ways[place.choices.ask(place.label, pattern, len(ways))])


def _write(place: Place, x: Value, dims: Sequence[Dim], wanted: tuple[Dim, ...]) -> list[Value]:
    """Make the node a Reshape."""
    kind = place.node.op_type
    place.snapshot()
    place.rw.rename("Reshape")
    place.rw.drop("axes", "axis")
    write(place, f"{kind} → Reshape to", np.empty(0, np.int64), tuple(dims), wanted, zeros=True)
    return [Value(x.dtype, wanted)]
