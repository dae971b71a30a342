"""Repair rules of Expand, Tile, ConstantOfShape and Range, and of constants as long as an axis: they may hold its length.

The constant alone does not show whether its 12 is the length of a sentence or a number of heads. The first hypothesis
keeps 12. The others follow a length that was 12; the search chooses them when a later node is in conflict.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

import numpy as np

from ..domain import Array, Dim, SampledValue, fixed
from ..domain.values import dtype_of
from ..node_context import NodeContext
from ..operand_edits import emit_range, keep_one_row, ones_but
from ..rule_table import rule

__all__ = ["choose_entries", "positions", "positions_in_any_input"]

_MAX_OPTIONS = 8
_MAX_LENGTHS = 2
"""The varying lengths that are tried for one entry."""


@rule("Expand", of_constants=True)
def expand(context: NodeContext) -> None:
    """Set the entries of varying axes of the data to 1, which keeps their length, and choose the other entries.

    A constant with equal rows along an axis that is to be of a varying length becomes one row, which is stretched.
    """
    shape = context.entries(1)
    dims = context.dims(0)
    if dims is None or shape is None:
        return
    entries = list(shape)
    offset = len(entries) - len(dims)
    for axis, dim in enumerate(dims):
        wanted = entries[axis + offset] if axis + offset >= 0 else 1
        if isinstance(wanted, Dim) and dim is not None and not dim.varies and dim.frozen == wanted.frozen > 1:
            keep_one_row(context, 0, axis)
    # `keep_one_row` may have changed the lengths of the data.
    dims = context.dims(0) or dims
    for position, dim in enumerate(dims, offset):
        if position >= 0 and dim is not None and dim.varies and entries[position] == dim.frozen != 1:
            entries[position] = 1
    free = [
        position
        for position in range(len(entries))
        if position < offset or dims[position - offset] == fixed(1)
    ]
    _write_entries(context, 1, "shape", shape, choose_entries(context, entries, free))


@rule("Tile", of_constants=True)
def tile(context: NodeContext) -> None:
    """Choose the repeats of axes of length 1."""
    dims, repeats = context.dims(0), context.entries(1)
    if dims is not None and repeats is not None and len(repeats) == len(dims):
        ones = [axis for axis, dim in enumerate(dims) if dim == fixed(1)]
        _write_entries(context, 1, "repeats", repeats, choose_entries(context, repeats, ones))


@rule("ConstantOfShape", of_constants=True)
def constant_of_shape(context: NodeContext) -> None:
    """Choose all entries of the shape."""
    shape = context.entries(0)
    if shape is not None:
        _write_entries(context, 0, "shape", shape, choose_entries(context, shape, range(len(shape))))


@rule("Range", of_constants=True)
def range_(context: NodeContext) -> None:
    """Choose the limit of a Range from 0 by steps of 1."""
    start, limit, delta = (context.integers(index) for index in range(3))
    if limit is None or start is None or delta is None or limit.ndim or start.item() or delta.item() != 1:
        return
    (entry,) = choose_entries(context, [limit.item()], [0])
    if isinstance(entry, int):
        return
    name = context.emit_length(entry, limit.dtype, 1)
    data = tuple(np.array(size, limit.dtype) for size in entry.sizes)
    value = SampledValue(dtype_of(limit), (), data)
    context.set_input(1, name, f"limit {limit.item()} → {context.name_of(entry)}", value)


def choose_entries(
    context: NodeContext, entries: list[int | Dim], axes: Collection[int], label: str = ""
) -> list[int | Dim]:
    """Return the entries under the current hypothesis: those of `axes` unchanged, or as varying lengths.

    A varying length is an option if it had the entry's number in the source model. `label` names the choice point
    if a node has several. Otherwise the node's label does.
    """
    options: list[list[int | Dim]] = []
    for axis, entry in enumerate(entries):
        varying: list[Dim] = []
        if isinstance(entry, int) and axis in axes and entry > 1:
            varying = context.graph_state.varying_dims(entry)
        # A constant counts the rows of one item rather than those of all items.
        of_an_item = [dim for dim in varying if not dim.of_batch]
        options.append([entry, *(of_an_item or varying)])
    if all(len(each) == 1 for each in options):
        return entries
    first_way, *rest = (list(each) for each in product(*(each[: 1 + _MAX_LENGTHS] for each in options)))
    rest.sort(key=lambda each: -sum(isinstance(entry, Dim) for entry in each))  # most varying entries first
    ways = [first_way, *rest][:_MAX_OPTIONS]
    pattern = context.node.op_type, str(entries)
    return ways[context.hypotheses.choose(label or context.label, pattern, len(ways))]


def _write_entries(
    context: NodeContext, index: int, what: str, before: list[int | Dim], entries: list[int | Dim]
) -> None:
    if entries != before:
        context.write_shape(index, entries, f"{what} {context.text(before)} → {context.text(entries)}")


@rule("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal", of_constants=True)
def positions_in_any_input(context: NodeContext) -> None:
    """Apply `positions` to every input of an element-wise node."""
    for index in range(len(context.inputs)):
        positions(context, index)


def positions(context: NodeContext, index: int) -> None:
    """Compute a constant of positions, or of one number repeated, for a length that varies, if that is the hypothesis.

    The constant is int32 or int64 and lies along one axis, as [1, 12] or [12, 1] do.
    """
    array = context.constant(index)
    if array is None or array.dtype not in (np.int64, np.int32):
        return
    if array.size < 2 or array.size not in array.shape:
        return
    filled = bool((array == array.reshape(-1)[0]).all())
    if not filled and not np.array_equal(array.reshape(-1), np.arange(array.size)):
        return
    (entry,) = choose_entries(context, [array.size], [0], f"{context.label}[{index}]")
    if isinstance(entry, int):
        return
    axis = array.shape.index(array.size)
    emit = _emit_filled if filled else _emit_positions
    name = emit(context, array, axis, entry, index)
    old, many = context.rw.input(index), context.name_of(entry)
    reason = (
        f"{old!r}: {array.reshape(-1)[0]} repeated {array.size} times → {many} times"
        if filled
        else f"{old!r}: positions 0, 1, …, {array.size - 1} → 0, 1, …, {many} - 1"
    )
    value = SampledValue(dtype_of(array), (fixed(1),) * array.ndim).with_axis(axis, entry)
    context.replace_input(index, name, value, reason)


def _emit_filled(context: NodeContext, array: Array, axis: int, entry: Dim, index: int) -> str:
    unit = context.rw.constant(array.reshape(-1)[:1].reshape([1] * array.ndim), "one")
    shape = context.emit_shape(ones_but(array.ndim, axis, entry), index)
    return context.rw.before("Expand", [unit, shape], hint="all")


def _emit_positions(context: NodeContext, array: Array, axis: int, entry: Dim, index: int) -> str:
    rw = context.rw
    limit = context.emit_length(entry, array.dtype, index)
    first, step = (
        rw.constant(np.array(number, array.dtype), hint) for number, hint in ((0, "first"), (1, "step"))
    )
    if array.ndim == 1:
        return rw.before("Range", [first, limit, step], hint="positions")
    return emit_range(rw, (first, limit, step), array.ndim, axis, hint="positions", shape_hint="row")
