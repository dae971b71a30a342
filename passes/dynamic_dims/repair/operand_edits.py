"""Edits that several repair rules share: an operand expanded or tiled to a varying length, and a computed Range."""

from __future__ import annotations

import numpy as np

from onnx_migrate.rewrite.rewriter import Rewriter

from .domain import Dim, fixed
from .node_context import LoopStateConflict, NodeContext

__all__ = ["emit_range", "expand_operand", "keep_one_row", "ones_but", "tile_operand"]


def expand_operand(context: NodeContext, index: int, axis: int, dim: Dim) -> None:
    """Expand one axis of an input, along which all rows are equal, to the length of `dim`.

    Nothing is done where the axis varies already or had another length than `dim`. Raises UnrepairableNode if the
    rows differ or are unknown, and LoopStateConflict for a loop-carried value, whose initial value must be expanded.
    """
    value = context.input(index)
    if value is None or value.dims is None or axis >= len(value.dims):
        return
    own = value.dims[axis]
    if own is None or own.varies or own.frozen != dim.frozen:
        return
    old = name = context.rw.input(index)
    state = context.graph_state.loop_state(name)
    if state is not None:
        raise LoopStateConflict(context, state, axis, dim)
    if own.frozen != 1:
        array = value.constant()
        if array is None and context.rw.constant_value(name) is None:
            context.refuse(
                f"axis {axis} of {context.describe(name)} has the fixed length {own.frozen}, but the axis of the other"
                f" inputs, which must have the same length, changes with {context.symbols_in(dim)}"
            )
        if array is None or not np.array_equal(array, np.repeat(np.take(array, [0], axis), own.frozen, axis)):
            context.refuse(
                f"{context.describe(name)} has {own.frozen} different rows along axis {axis}, and none for other lengths"
                f" of the axis, which changes with {context.symbols_in(dim)}",
                index,
            )
        first = context.rw.constant(np.zeros(1, np.int64), "first")
        name = context.rw.before("Gather", [name, first], hint="row", axis=axis)
    prefer = [other for position, other in enumerate(context.node.input) if other and position != index]
    shape = context.emit_shape(ones_but(len(value.dims), axis, dim), index, prefer)
    expanded = context.rw.before("Expand", [name, shape], hint="batch")
    reason = f"{old!r} is expanded along axis {axis} to {context.name_of(dim)}"
    context.replace_input(index, expanded, value.with_axis(axis, dim), reason)


def keep_one_row(context: NodeContext, index: int, axis: int) -> None:
    """Replace a constant whose rows along an axis are equal by one of them."""
    name = context.rw.input(index)
    array = context.rw.constant_value(name)
    value = context.input(index)
    if array is None or value is None or value.dims is None:
        return
    row = np.take(array, [0], axis)
    if not np.array_equal(array, np.repeat(row, array.shape[axis], axis)):
        return
    reason = f"{name!r} has equal rows along axis {axis}: one row, which broadcasts to any length"
    context.replace_input(index, context.rw.constant(row, "row"), value.with_axis(axis, fixed(1)), reason)


def tile_operand(context: NodeContext, index: int, axis: int, dim: Dim, repeats: Dim) -> None:
    """Tile one axis of an input `repeats` times, so that it has the length of `dim`."""
    value = context.input(index)
    if value is None or value.dims is None:
        return
    old = context.rw.input(index)
    shape = context.emit_shape(ones_but(len(value.dims), axis, repeats), index)
    tiled = context.rw.before("Tile", [old, shape], hint="items")
    reason = f"{old!r} is tiled along axis {axis} to {context.name_of(dim)}"
    context.replace_input(index, tiled, value.with_axis(axis, dim), reason)


def ones_but(rank: int, axis: int, dim: Dim) -> list[int | Dim]:
    """Return a shape that is 1 along all axes but one."""
    return [dim if position == axis else 1 for position in range(rank)]


def emit_range(
    rw: Rewriter, bounds: tuple[str, str, str], rank: int, axis: int, *, hint: str, shape_hint: str
) -> str:
    """Write a Range of three scalars (start, limit, delta), reshaped to lie along one axis; return its name.

    The result has `rank` axes, all of length 1 but `axis`. The hints name the values and the Reshape's constant.
    """
    shape = np.ones(rank, np.int64)
    shape[axis] = -1
    vector = rw.before("Range", list(bounds), hint=hint)
    return rw.before("Reshape", [vector, rw.constant(shape, shape_hint)], hint=hint)
