"""Positions 0, 1, 2, … that were counted for one length, and one number that was written as often as one."""

from __future__ import annotations

import numpy as np
import onnx

from ..domain import Array, Dim, Value
from ..graph_state import UnknownLengthError
from ..node_context import Place
from .expand_and_fill import followed

__all__ = ["positions", "positions_of_any"]


def positions_of_any(place: Place) -> None:
    """Let the positions that an elementwise node takes be counted for what contradicts them."""
    for index in range(len(place.given)):
        positions(place, index)


def positions(place: Place, index: int) -> None:
    """Let the positions an input holds be counted for what contradicts them, and one number be there as often."""
    value = place.input(index)
    held = value.constant() if value is not None else None
    if held is None or held.dtype not in (np.int64, np.int32) or held.size < 2 or held.size not in held.shape:
        return
    same = bool((held == held.reshape(-1)[0]).all())
    if not same and not np.array_equal(held.reshape(-1), np.arange(held.size)):
        return
    entry = followed(place, [held.size], [0], f"{place.label}[{index}]")[0]
    if isinstance(entry, int):
        return
    axis = held.shape.index(held.size)
    try:
        name = _as_often(place, held, axis, entry) if same else _counted(place, held, axis, entry)
    except UnknownLengthError:
        place.block("no value before it is as long as it must become", index)
    old, many = place.rw.input(index), place.name_of(entry)
    what = (
        f"{held.size} times {held.reshape(-1)[0]} → {many} times"
        if same
        else f"0 … {held.size - 1} → 0 … {many} - 1"
    )
    place.set_input(index, name, f"{old!r}, {what}" if same else f"positions {old!r} {what}")
    dims = [place.worlds.fixed(1)] * held.ndim
    dims[axis] = entry
    kind = int(onnx.helper.np_dtype_to_tensor_dtype(held.dtype))
    place.given[index] = Value(kind, tuple(dims))
    place.body.learn(name, Value(kind, tuple(dims)))


def _as_often(place: Place, held: Array, axis: int, entry: Dim) -> str:
    one = place.rw.constant(held.reshape(-1)[:1].reshape([1] * held.ndim), "one")
    entries: list[int | Dim] = [1] * held.ndim
    entries[axis] = entry
    return place.rw.before("Expand", [one, place.body.shape(place.rw, entries)], hint="all")


def _counted(place: Place, held: Array, axis: int, entry: Dim) -> str:
    rw = place.rw
    limit = place.body.scalar(rw, entry, held)
    first, step = (
        rw.constant(np.array(number, held.dtype), hint) for number, hint in ((0, "first"), (1, "step"))
    )
    name = rw.before("Range", [first, limit, step], hint="positions")
    if held.ndim == 1:
        return name
    shape = np.ones(held.ndim, np.int64)
    shape[axis] = -1
    return rw.before("Reshape", [name, rw.constant(shape, "row")], hint="positions")
