"""Expand, Tile, ConstantOfShape and Range, whose constants hold a length that moves.

A constant alone does not say whether its 12 is the length of a sentence or a number of heads. It is taken for the
number it is until a later node contradicts that.
"""

from __future__ import annotations

from itertools import product as combinations

from ..domain import Dim
from ..graph_state import UnknownLengthError
from ..node_context import Place

__all__ = ["constant_of_shape", "expand", "followed", "range_", "tile"]

_MOST = 8


def expand(place: Place) -> None:
    """Let axes of the data that move stay as they are, and others follow what contradicts them."""
    x, shape = place.input(0), place.entries(1)
    dims = x.dims if x is not None else None
    if dims is None or shape is None:
        return
    entries = list(shape)
    offset = len(entries) - len(dims)
    for axis, dim in enumerate(dims):
        at = axis + offset
        if at >= 0 and dim is not None and dim.varies and entries[at] == dim.frozen and dim.frozen != 1:
            entries[at] = 1  # which keeps the data's
    fixed = [at for at, size in enumerate(entries) if at >= offset and _fixed(dims[at - offset])]
    fixed += list(range(max(offset, 0)))
    entries = followed(place, entries, sorted(set(fixed)))
    if entries != shape:
        place.write_shape(1, entries, _reason(place, "shape", shape, entries))


def _fixed(dim: Dim | None) -> bool:
    return dim is not None and dim.frozen == 1 and not dim.varies


def tile(place: Place) -> None:
    """Let a repeat of an axis of length 1 follow what contradicts it."""
    x, repeats = place.input(0), place.entries(1)
    if x is None or x.dims is None or repeats is None or len(repeats) != len(x.dims):
        return
    fixed = [axis for axis, dim in enumerate(x.dims) if _fixed(dim)]
    entries = followed(place, repeats, fixed)
    if entries != repeats:
        place.write_shape(1, entries, _reason(place, "repeats", repeats, entries))


def constant_of_shape(place: Place) -> None:
    """Let entries follow what contradicts them."""
    shape = place.entries(0)
    if shape is None:
        return
    entries = followed(place, shape, list(range(len(shape))))
    if entries != shape:
        place.write_shape(0, entries, _reason(place, "shape", shape, entries))


def range_(place: Place) -> None:
    """Let the end follow what contradicts it."""
    start, limit, delta = (place.numbers(index) for index in range(3))
    if limit is None or start is None or delta is None or limit.ndim or start.item() or delta.item() != 1:
        return
    entry = followed(place, [limit.item()], [0])[0]
    if isinstance(entry, Dim):
        try:
            name = place.body.scalar(place.rw, entry, limit)
        except UnknownLengthError:
            place.block("no value before it is as long as it must become", 1)
        place.set_input(1, name, f"limit {limit.item()} → {place.name_of(entry)}")
        from ..node_context import held

        value = held([entry], place.worlds)
        data = tuple(array.reshape(()).astype(limit.dtype) for array in value.data or ())
        value.dtype, value.dims, value.data = _kind(limit), (), data
        place.given[1] = value


def _kind(array: object) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(array.dtype))  # type: ignore[attr-defined]


def followed(place: Place, entries: list[int | Dim], axes: list[int], label: str = "") -> list[int | Dim]:
    """Return the entries, those of `axes` as numbers or as a moving length that was as long.

    `label` stands for the place where several such are asked for at one.
    """
    options: list[list[int | Dim]] = []
    for axis, entry in enumerate(entries):
        moving = place.body.moving(entry) if isinstance(entry, int) and axis in axes and entry > 1 else []
        # Who counts to 12 counts to a length, and not to lengths of all items.
        options.append([entry, *([dim for dim in moving if not place.worlds.carries_batch(dim)] or moving)])
    if all(len(each) == 1 for each in options):
        return entries
    every = [list(way) for way in combinations(*(each[:3] for each in options))]
    # All that may follow do, before only some of them do.
    kept, rest = every[0], sorted(every[1:], key=lambda way: -sum(isinstance(entry, Dim) for entry in way))
    ways = [kept, *rest][:_MOST]
    return ways[place.choices.ask(label or place.label, (place.node.op_type, str(entries)), len(ways))]


def _reason(place: Place, what: str, before: list[int | Dim], entries: list[int | Dim]) -> str:
    return f"{what} {place.text(before)} → {place.text(entries)}"
