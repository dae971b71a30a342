"""Positions 0, 1, 2, … that were counted for one length, and one number that was written as often as one."""

from __future__ import annotations

import numpy as np
import onnx

from ..domain import Array, Dim, Value
from ..graph_state import UnknownLength
from ..node_context import NodeContext
from .expand_and_fill import choose_entries

__all__ = ["positions", "positions_in_any_input"]


def positions_in_any_input(context: NodeContext) -> None:
    """Let the positions that an elementwise node takes be counted for what contradicts them."""
    for index in range(len(context.inputs)):
        positions(context, index)


def positions(context: NodeContext, index: int) -> None:
    """Let the positions an input holds be counted for what contradicts them, and one number be there as often."""
    value = context.input(index)
    array = value.constant() if value is not None else None
    if (
        array is None
        or array.dtype not in (np.int64, np.int32)
        or array.size < 2
        or array.size not in array.shape
    ):
        return
    same = bool((array == array.reshape(-1)[0]).all())
    if not same and not np.array_equal(array.reshape(-1), np.arange(array.size)):
        return
    entry = choose_entries(context, [array.size], [0], f"{context.label}[{index}]")[0]
    if isinstance(entry, int):
        return
    axis = array.shape.index(array.size)
    try:
        name = _emit_filled(context, array, axis, entry) if same else _emit_range(context, array, axis, entry)
    except UnknownLength:
        context.refuse("no value before it is as long as it must become", index)
    old, many = context.rw.input(index), context.name_of(entry)
    what = (
        f"{array.size} times {array.reshape(-1)[0]} → {many} times"
        if same
        else f"0 … {array.size - 1} → 0 … {many} - 1"
    )
    context.set_input(index, name, f"{old!r}, {what}" if same else f"positions {old!r} {what}")
    dims = [context.assignments.fixed(1)] * array.ndim
    dims[axis] = entry
    kind = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
    context.inputs[index] = Value(kind, tuple(dims))
    context.graph_state.record(name, Value(kind, tuple(dims)))


def _emit_filled(context: NodeContext, array: Array, axis: int, entry: Dim) -> str:
    one = context.rw.constant(array.reshape(-1)[:1].reshape([1] * array.ndim), "one")
    entries: list[int | Dim] = [1] * array.ndim
    entries[axis] = entry
    return context.rw.before("Expand", [one, context.graph_state.emit_shape(context.rw, entries)], hint="all")


def _emit_range(context: NodeContext, array: Array, axis: int, entry: Dim) -> str:
    rw = context.rw
    limit = context.graph_state.emit_length(rw, entry, array)
    first, step = (
        rw.constant(np.array(number, array.dtype), hint) for number, hint in ((0, "first"), (1, "step"))
    )
    name = rw.before("Range", [first, limit, step], hint="positions")
    if array.ndim == 1:
        return name
    shape = np.ones(array.ndim, np.int64)
    shape[axis] = -1
    return rw.before("Reshape", [name, rw.constant(shape, "row")], hint="positions")
