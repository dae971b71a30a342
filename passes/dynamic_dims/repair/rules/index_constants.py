"""Repair rules of constants as long as an axis: positions 0, 1, 2, ..., and one number repeated."""

from __future__ import annotations

import numpy as np

from ..domain import Array, Dim, Value
from ..domain.value import dtype_of
from ..graph_state import UnknownLength
from ..node_context import NodeContext
from ..operand_edits import emit_range
from .expand_and_fill import choose_entries

__all__ = ["positions", "positions_in_any_input"]


def positions_in_any_input(context: NodeContext) -> None:
    """Apply `positions` to every input of an element-wise node."""
    for index in range(len(context.inputs)):
        positions(context, index)


def positions(context: NodeContext, index: int) -> None:
    """Compute a constant of positions, or of one number repeated, for a length that varies, if that is the hypothesis.

    The constant is int32 or int64 and lies along one axis, as [1, 12] or [12, 1] do.
    """
    value = context.input(index)
    array = value.constant() if value is not None else None
    if array is None or array.dtype not in (np.int64, np.int32):
        return
    if array.size < 2 or array.size not in array.shape:
        return
    filled = bool((array == array.reshape(-1)[0]).all())
    if not filled and not np.array_equal(array.reshape(-1), np.arange(array.size)):
        return
    entry = choose_entries(context, [array.size], [0], f"{context.label}[{index}]")[0]
    if isinstance(entry, int):
        return
    axis = array.shape.index(array.size)
    try:
        emit = _emit_filled if filled else _emit_positions
        name = emit(context, array, axis, entry)
    except UnknownLength:
        context.refuse_unknown_length(index)
    old, many = context.rw.input(index), context.name_of(entry)
    reason = (
        f"{old!r}: {array.reshape(-1)[0]} repeated {array.size} times → {many} times"
        if filled
        else f"{old!r}: positions 0, 1, …, {array.size - 1} → 0, 1, …, {many} - 1"
    )
    dims = [context.assignments.fixed(1)] * array.ndim
    dims[axis] = entry
    context.replace_input(index, name, Value(dtype_of(array), tuple(dims)), reason)


def _emit_filled(context: NodeContext, array: Array, axis: int, entry: Dim) -> str:
    one = context.rw.constant(array.reshape(-1)[:1].reshape([1] * array.ndim), "one")
    entries: list[int | Dim] = [1] * array.ndim
    entries[axis] = entry
    shape = context.graph_state.emit_shape(context.rw, entries)
    return context.rw.before("Expand", [one, shape], hint="all")


def _emit_positions(context: NodeContext, array: Array, axis: int, entry: Dim) -> str:
    rw = context.rw
    limit = context.graph_state.emit_length(rw, entry, array.dtype)
    first, step = (
        rw.constant(np.array(number, array.dtype), hint) for number, hint in ((0, "first"), (1, "step"))
    )
    if array.ndim == 1:
        return rw.before("Range", [first, limit, step], hint="positions")
    return emit_range(rw, (first, limit, step), array.ndim, axis, hint="positions", shape_hint="row")
