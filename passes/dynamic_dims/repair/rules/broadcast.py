"""Values without the batch that meet values with it: states of recurrent networks, and constants that are joined."""

from __future__ import annotations

import numpy as np
import onnx

from ..domain import Dim, Dims, Value
from ..graph_state import UnknownLength
from ..node_context import LoopStateConflict, NodeContext

__all__ = [
    "broadcast",
    "concat",
    "gather_elements",
    "grid_sample",
    "matmul",
    "normalization",
    "recurrent",
    "repeat",
    "reverse",
]


def recurrent(context: NodeContext) -> None:
    """Repeat initial states and lengths for each item of the batch."""
    x = context.input(0)
    dims = x.dims if x is not None else None
    if dims is None or len(dims) != 3:
        return
    layout = context.attributes.get("layout", 0)
    batch = dims[0 if layout else 1]
    if batch is None or not batch.varies:
        return
    for index in (5, 6) if context.node.op_type == "LSTM" else (5,):
        repeat(context, index, 0 if layout else 1, batch)
    _sequence_lengths(context, 4, dims[1 if layout else 0])
    repeat(context, 4, 0, batch)


def reverse(context: NodeContext) -> None:
    """Let the lengths of a ReverseSequence be there for each item, and whole ones stay whole."""
    x = context.input(0)
    dims = x.dims if x is not None else None
    if dims is None:
        return
    _sequence_lengths(context, 1, dims[context.attributes.get("time_axis", 0)])
    batch = dims[context.attributes.get("batch_axis", 1)]
    if batch is not None and batch.varies:
        repeat(context, 1, 0, batch)


def _sequence_lengths(context: NodeContext, index: int, time: Dim | None) -> None:
    """Let lengths of sequences that were the whole axis of time be the whole of it."""
    value = context.input(index)
    array = value.constant() if value is not None else None
    if value is None or array is None or not array.size or time is None or not time.varies:
        return
    if (array != time.frozen).any():
        context.refuse("the lengths of its sequences are constants, and the axis of time moves", index)
    kind = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
    try:
        name = context.graph_state.emit_shape(context.rw, [time], context.node.input[:1])
    except UnknownLength:
        context.refuse("no value before it is as long as its sequences are", index)
    if array.dtype != np.int64:
        name = context.rw.before("Cast", [name], hint="lengths", to=kind)
    if array.size > 1:
        name = context.rw.before(
            "Expand", [name, context.rw.constant(np.array(array.shape, np.int64), "items")], hint="lengths"
        )
    context.set_input(
        index, name, f"lengths of {time.frozen} → {context.name_of(time)}, the whole axis of time"
    )
    context.inputs[index] = Value(kind, value.dims)
    context.graph_state.record(name, Value(kind, value.dims))


def normalization(context: NodeContext) -> None:
    """Repeat what a BatchNormalization holds for the one channel it had: Keras' normalisation of single rows."""
    x = context.input(0)
    channels = x.dims[1] if x is not None and x.dims is not None and len(x.dims) > 1 else None
    if channels is not None and channels.varies and channels.frozen == 1:
        for index in range(1, 5):
            repeat(context, index, 0, channels)


def concat(context: NodeContext) -> None:
    """Repeat what has no batch where the others have one."""
    if not any(value is not None and value.varies for value in context.inputs):
        return
    axis = context.attributes.get("axis", 1)
    shapes = [value.known if value is not None else None for value in context.inputs]
    if any(shape is None for shape in shapes):
        return
    ranks = {len(shape) for shape in shapes if shape is not None}
    if len(ranks) > 1:
        return
    rank = ranks.pop()
    for other in range(rank):
        if other == axis % rank:
            continue
        varying = {shape[other] for shape in shapes if shape is not None and shape[other].varies}
        if len(varying) == 1:
            dim = varying.pop()
            for index in range(len(context.inputs)):
                repeat(context, index, other, dim)


def broadcast(context: NodeContext) -> None:
    """Let a constant that is the same all along an axis be one row of it, which any length takes.

    One that differs is repeated whole for each item where items are laid with that axis.
    """
    shapes = [value.dims if value is not None else None for value in context.inputs]
    rank = max((len(dims) for dims in shapes if dims is not None), default=0)
    for back in range(1, rank + 1):
        along = [dims[-back] for dims in shapes if dims is not None and len(dims) >= back]
        varying = {dim for dim in along if dim is not None and dim.varies}
        if len(varying) != 1:
            continue
        frozen = varying.pop().frozen
        for index, dims in enumerate(shapes):
            if dims is None or len(dims) < back or frozen == 1:
                continue
            own = dims[-back]
            if own is not None and not own.varies and own.frozen == frozen:
                _one_row(context, index, len(dims) - back)
    if rank:
        _tile_merged(context, [value.dims if value is not None else None for value in context.inputs], 1)


def matmul(context: NodeContext) -> None:
    """Repeat whole what a MatMul multiplies every item with, if the items are laid with another of its axes."""
    shapes = [value.dims if value is not None else None for value in context.inputs]
    if len(shapes) == 2 and all(dims is not None and len(dims) > 2 for dims in shapes):
        _tile_merged(context, shapes, 3)


def _tile_merged(context: NodeContext, shapes: list[Dims | None], first: int) -> None:
    """Tile axes, counted from behind and from `first` on, that another input has once for each item."""
    for back in range(first, max(len(dims) for dims in shapes if dims is not None) + 1):
        along = {
            index: dims[-back] for index, dims in enumerate(shapes) if dims is not None and len(dims) >= back
        }
        merged = {dim for dim in along.values() if dim is not None and dim.factors and dim.varies}
        if len(merged) != 1:
            continue
        (dim,) = merged
        batch = dim.flat_factors()[0]
        if batch.frozen != 1 or not context.assignments.carries_batch(batch):
            continue
        each = tuple(size * dim.frozen for size in batch.sizes)
        for index, own in along.items():
            if own is not None and not own.varies and own.frozen == dim.frozen > 1 and each == dim.sizes:
                tile(context, index, len(shapes[index] or ()) - back, dim, batch)


def tile(context: NodeContext, index: int, axis: int, dim: Dim, batch: Dim) -> None:
    """Repeat an input along an axis, which is to be as long as `dim`, as often as `batch` is long."""
    value = context.input(index)
    dims = value.dims if value is not None else None
    if value is None or dims is None:
        return
    entries: list[int | Dim] = [1] * len(dims)
    entries[axis] = batch
    old = context.rw.input(index)
    wide = context.rw.before("Tile", [old, context.graph_state.emit_shape(context.rw, entries)], hint="items")
    context.set_input(
        index, wide, f"{old!r} is repeated for each item: its axis {axis} follows {context.name_of(dim)}"
    )
    context.inputs[index] = Value(value.dtype, (*dims[:axis], dim, *dims[axis + 1 :]))
    context.graph_state.record(wide, Value(value.dtype, (*dims[:axis], dim, *dims[axis + 1 :])))


def _one_row(context: NodeContext, index: int, axis: int) -> None:
    name = context.rw.input(index)
    array = context.rw.constant_value(name)
    value = context.input(index)
    if array is None or value is None or value.dims is None:
        return
    row = np.take(array, [0], axis)
    if not np.array_equal(array, np.repeat(row, array.shape[axis], axis)):
        return
    short = context.rw.constant(row, "row")
    context.set_input(index, short, f"{name!r} is the same all along its axis {axis}, and one row of it does")
    dims = tuple(context.assignments.fixed(1) if at == axis else dim for at, dim in enumerate(value.dims))
    context.inputs[index] = Value(value.dtype, dims)
    context.graph_state.record(short, Value(value.dtype, dims))


def grid_sample(context: NodeContext) -> None:
    """Repeat the first axis of either input for the other's."""
    _expand_shared_axes(context, (0, 1), {0})


def gather_elements(context: NodeContext) -> None:
    """Repeat indices (and updates) of GatherElements and ScatterElements along axes that carry the batch."""
    x = context.input(0)
    if x is None or x.dims is None:
        return
    rank = len(x.dims)
    along = context.attributes.get("axis", 0) % max(rank, 1)
    _expand_shared_axes(context, tuple(range(len(context.inputs))), set(range(rank)) - {along})
    if context.node.op_type == "ScatterElements" and rank == 1:
        _inverse(context)


def _inverse(context: NodeContext) -> None:
    """Let the inverse of a batch's order, of one item, be that of as many as there are: sequences sorted by length."""
    index, ranks = context.input(1), context.integers(2)
    dim = index.dims[0] if index is not None and index.dims else None
    if (
        dim is None
        or not context.assignments.carries_batch(dim)
        or dim.frozen != 1
        or ranks is None
        or ranks.any()
    ):
        return
    repeat(context, 0, 0, dim)
    limit = context.graph_state.emit_length(context.rw, dim, ranks, context.node.input[1:2])
    first, step = (context.rw.constant(np.array(number, ranks.dtype), "rank") for number in (0, 1))
    name = context.rw.before("Range", [first, limit, step], hint="ranks")
    context.set_input(2, name, f"ranks [0] → 0 … {context.name_of(dim)} - 1")
    context.inputs[2] = Value(context.inputs[0].dtype if context.inputs[0] else 0, (dim,))


def _expand_shared_axes(context: NodeContext, inputs: tuple[int, ...], axes: set[int]) -> None:
    for axis in axes:
        varying = set()
        for index in inputs:
            value = context.input(index)
            if value is not None and value.dims is not None and axis < len(value.dims):
                dim = value.dims[axis]
                if dim is not None and context.assignments.carries_batch(dim):
                    varying.add(dim)
        if len(varying) == 1:
            dim = varying.pop()
            for index in inputs:
                repeat(context, index, axis, dim)


def repeat(context: NodeContext, index: int, axis: int, dim: Dim) -> None:
    """Expand one axis of an input, which is the same for every item, to a length that moves.

    Raises StateError for a state of a Loop or Scan, which is to begin so.
    """
    value = context.input(index)
    if value is None or value.dims is None or axis >= len(value.dims):
        return
    own = value.dims[axis]
    if own is None or own.varies or own.frozen != dim.frozen:
        return
    name = context.rw.input(index)
    state = context.graph_state.loop_state(name)
    if state is not None:
        raise LoopStateConflict(context, state, axis, dim)
    if own.frozen != 1:
        array = value.constant()
        if array is None and context.rw.constant_value(name) is None:
            context.refuse(
                f"axis {axis} of {name!r} is {own.frozen} whatever the sizes, and is to follow {context.name_of(dim)}"
            )
        if array is None or not np.array_equal(array, np.repeat(np.take(array, [0], axis), own.frozen, axis)):
            context.refuse(f"axis {axis} of {name!r} holds one row for each of {own.frozen} items", index)
        first = context.rw.constant(np.zeros(1, np.int64), "first")
        name = context.rw.before("Gather", [name, first], hint="row", axis=axis)
    entries: list[int | Dim] = [1] * len(value.dims)
    entries[axis] = dim
    prefer = [other for position, other in enumerate(context.node.input) if other and position != index]
    shape = context.graph_state.emit_shape(context.rw, entries, prefer)
    wide = context.rw.before("Expand", [name, shape], hint="batch")
    old = context.rw.input(index)
    context.set_input(
        index, wide, f"{old!r} is repeated for each item: its axis {axis} follows {context.name_of(dim)}"
    )
    dims = tuple(dim if at == axis else other for at, other in enumerate(value.dims))
    context.inputs[index] = Value(value.dtype, dims)
    context.graph_state.record(wide, Value(value.dtype, dims))
