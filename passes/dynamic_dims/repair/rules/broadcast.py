"""Values without the batch that meet values with it: states of recurrent networks, and constants that are joined."""

from __future__ import annotations

import numpy as np
import onnx

from ..domain import Dim, Dims, Value
from ..graph_state import UnknownLengthError
from ..node_context import Place, StateError

__all__ = [
    "broadcast",
    "concat",
    "elements",
    "grid",
    "normalization",
    "product",
    "recurrent",
    "repeat",
    "reverse",
]


def recurrent(place: Place) -> None:
    """Repeat initial states and lengths for each item of the batch."""
    x = place.input(0)
    dims = x.dims if x is not None else None
    if dims is None or len(dims) != 3:
        return
    layout = place.attributes.get("layout", 0)
    batch = dims[0 if layout else 1]
    if batch is None or not batch.varies:
        return
    for index in (5, 6) if place.node.op_type == "LSTM" else (5,):
        repeat(place, index, 0 if layout else 1, batch)
    _lengths(place, 4, dims[1 if layout else 0])
    repeat(place, 4, 0, batch)


def reverse(place: Place) -> None:
    """Let the lengths of a ReverseSequence be there for each item, and whole ones stay whole."""
    x = place.input(0)
    dims = x.dims if x is not None else None
    if dims is None:
        return
    _lengths(place, 1, dims[place.attributes.get("time_axis", 0)])
    batch = dims[place.attributes.get("batch_axis", 1)]
    if batch is not None and batch.varies:
        repeat(place, 1, 0, batch)


def _lengths(place: Place, index: int, time: Dim | None) -> None:
    """Let lengths of sequences that were the whole axis of time be the whole of it."""
    value = place.input(index)
    held = value.constant() if value is not None else None
    if value is None or held is None or not held.size or time is None or not time.varies:
        return
    if (held != time.frozen).any():
        place.block("the lengths of its sequences are constants, and the axis of time moves", index)
    kind = int(onnx.helper.np_dtype_to_tensor_dtype(held.dtype))
    try:
        name = place.body.shape(place.rw, [time], place.node.input[:1])
    except UnknownLengthError:
        place.block("no value before it is as long as its sequences are", index)
    if held.dtype != np.int64:
        name = place.rw.before("Cast", [name], hint="lengths", to=kind)
    if held.size > 1:
        name = place.rw.before(
            "Expand", [name, place.rw.constant(np.array(held.shape, np.int64), "items")], hint="lengths"
        )
    place.set_input(index, name, f"lengths of {time.frozen} → {place.name_of(time)}, the whole axis of time")
    place.given[index] = Value(kind, value.dims)
    place.body.learn(name, Value(kind, value.dims))


def normalization(place: Place) -> None:
    """Repeat what a BatchNormalization holds for the one channel it had: Keras' normalisation of single rows."""
    x = place.input(0)
    channels = x.dims[1] if x is not None and x.dims is not None and len(x.dims) > 1 else None
    if channels is not None and channels.varies and channels.frozen == 1:
        for index in range(1, 5):
            repeat(place, index, 0, channels)


def concat(place: Place) -> None:
    """Repeat what has no batch where the others have one."""
    if not any(value is not None and value.varies for value in place.given):
        return
    axis = place.attributes.get("axis", 1)
    shapes = [value.known if value is not None else None for value in place.given]
    if any(shape is None for shape in shapes):
        return
    ranks = {len(shape) for shape in shapes if shape is not None}
    if len(ranks) > 1:
        return
    rank = ranks.pop()
    for other in range(rank):
        if other == axis % rank:
            continue
        moving = {shape[other] for shape in shapes if shape is not None and shape[other].varies}
        if len(moving) == 1:
            dim = moving.pop()
            for index in range(len(place.given)):
                repeat(place, index, other, dim)


def broadcast(place: Place) -> None:
    """Let a constant that is the same all along an axis be one row of it, which any length takes.

    One that differs is repeated whole for each item where items are laid with that axis.
    """
    shapes = [value.dims if value is not None else None for value in place.given]
    rank = max((len(dims) for dims in shapes if dims is not None), default=0)
    for back in range(1, rank + 1):
        along = [dims[-back] for dims in shapes if dims is not None and len(dims) >= back]
        moving = {dim for dim in along if dim is not None and dim.varies}
        if len(moving) != 1:
            continue
        frozen = moving.pop().frozen
        for index, dims in enumerate(shapes):
            if dims is None or len(dims) < back or frozen == 1:
                continue
            own = dims[-back]
            if own is not None and not own.varies and own.frozen == frozen:
                _one_row(place, index, len(dims) - back)
    if rank:
        _laid(place, [value.dims if value is not None else None for value in place.given], 1)


def product(place: Place) -> None:
    """Repeat whole what a MatMul multiplies every item with, if the items are laid with another of its axes."""
    shapes = [value.dims if value is not None else None for value in place.given]
    if len(shapes) == 2 and all(dims is not None and len(dims) > 2 for dims in shapes):
        _laid(place, shapes, 3)


def _laid(place: Place, shapes: list[Dims | None], first: int) -> None:
    """Tile axes, counted from behind and from `first` on, that another input has once for each item."""
    for back in range(first, max(len(dims) for dims in shapes if dims is not None) + 1):
        along = {
            index: dims[-back] for index, dims in enumerate(shapes) if dims is not None and len(dims) >= back
        }
        laid = {dim for dim in along.values() if dim is not None and dim.parts and dim.varies}
        if len(laid) != 1:
            continue
        (dim,) = laid
        batch = dim.leaves()[0]
        if batch.frozen != 1 or not place.worlds.carries_batch(batch):
            continue
        each = tuple(size * dim.frozen for size in batch.sizes)
        for index, own in along.items():
            if own is not None and not own.varies and own.frozen == dim.frozen > 1 and each == dim.sizes:
                tile(place, index, len(shapes[index] or ()) - back, dim, batch)


def tile(place: Place, index: int, axis: int, dim: Dim, batch: Dim) -> None:
    """Repeat an input along an axis, which is to be as long as `dim`, as often as `batch` is long."""
    value = place.input(index)
    dims = value.dims if value is not None else None
    if value is None or dims is None:
        return
    entries: list[int | Dim] = [1] * len(dims)
    entries[axis] = batch
    old = place.rw.input(index)
    wide = place.rw.before("Tile", [old, place.body.shape(place.rw, entries)], hint="items")
    place.set_input(
        index, wide, f"{old!r} is repeated for each item: its axis {axis} follows {place.name_of(dim)}"
    )
    place.given[index] = Value(value.dtype, (*dims[:axis], dim, *dims[axis + 1 :]))
    place.body.learn(wide, Value(value.dtype, (*dims[:axis], dim, *dims[axis + 1 :])))


def _one_row(place: Place, index: int, axis: int) -> None:
    name = place.rw.input(index)
    held = place.rw.constant_value(name)
    value = place.input(index)
    if held is None or value is None or value.dims is None:
        return
    row = np.take(held, [0], axis)
    if not np.array_equal(held, np.repeat(row, held.shape[axis], axis)):
        return
    short = place.rw.constant(row, "row")
    place.set_input(index, short, f"{name!r} is the same all along its axis {axis}, and one row of it does")
    dims = tuple(place.worlds.fixed(1) if at == axis else dim for at, dim in enumerate(value.dims))
    place.given[index] = Value(value.dtype, dims)
    place.body.learn(short, Value(value.dtype, dims))


def grid(place: Place) -> None:
    """Repeat the first axis of either input for the other's."""
    _alike(place, (0, 1), {0})


def elements(place: Place) -> None:
    """Repeat indices (and updates) of GatherElements and ScatterElements along axes that carry the batch."""
    x = place.input(0)
    if x is None or x.dims is None:
        return
    rank = len(x.dims)
    along = place.attributes.get("axis", 0) % max(rank, 1)
    _alike(place, tuple(range(len(place.given))), set(range(rank)) - {along})
    if place.node.op_type == "ScatterElements" and rank == 1:
        _inverse(place)


def _inverse(place: Place) -> None:
    """Let the inverse of a batch's order, of one item, be that of as many as there are: sequences sorted by length."""
    index, ranks = place.input(1), place.numbers(2)
    dim = index.dims[0] if index is not None and index.dims else None
    if dim is None or not place.worlds.carries_batch(dim) or dim.frozen != 1 or ranks is None or ranks.any():
        return
    repeat(place, 0, 0, dim)
    limit = place.body.scalar(place.rw, dim, ranks, place.node.input[1:2])
    first, step = (place.rw.constant(np.array(number, ranks.dtype), "rank") for number in (0, 1))
    name = place.rw.before("Range", [first, limit, step], hint="ranks")
    place.set_input(2, name, f"ranks [0] → 0 … {place.name_of(dim)} - 1")
    place.given[2] = Value(place.given[0].dtype if place.given[0] else 0, (dim,))


def _alike(place: Place, inputs: tuple[int, ...], axes: set[int]) -> None:
    for axis in axes:
        moving = set()
        for index in inputs:
            value = place.input(index)
            if value is not None and value.dims is not None and axis < len(value.dims):
                dim = value.dims[axis]
                if dim is not None and place.worlds.carries_batch(dim):
                    moving.add(dim)
        if len(moving) == 1:
            dim = moving.pop()
            for index in inputs:
                repeat(place, index, axis, dim)


def repeat(place: Place, index: int, axis: int, dim: Dim) -> None:
    """Expand one axis of an input, which is the same for every item, to a length that moves.

    Raises StateError for a state of a Loop or Scan, which is to begin so.
    """
    value = place.input(index)
    if value is None or value.dims is None or axis >= len(value.dims):
        return
    own = value.dims[axis]
    if own is None or own.varies or own.frozen != dim.frozen:
        return
    name = place.rw.input(index)
    state = place.body.state(name)
    if state is not None:
        raise StateError(place, state, axis, dim)
    if own.frozen != 1:
        held = value.constant()
        if held is None and place.rw.constant_value(name) is None:
            place.block(
                f"axis {axis} of {name!r} is {own.frozen} whatever the sizes, and is to follow {place.name_of(dim)}"
            )
        if held is None or not np.array_equal(held, np.repeat(np.take(held, [0], axis), own.frozen, axis)):
            place.block(f"axis {axis} of {name!r} holds one row for each of {own.frozen} items", index)
        first = place.rw.constant(np.zeros(1, np.int64), "first")
        name = place.rw.before("Gather", [name, first], hint="row", axis=axis)
    entries: list[int | Dim] = [1] * len(value.dims)
    entries[axis] = dim
    prefer = [other for position, other in enumerate(place.node.input) if other and position != index]
    shape = place.body.shape(place.rw, entries, prefer)
    wide = place.rw.before("Expand", [name, shape], hint="batch")
    old = place.rw.input(index)
    place.set_input(
        index, wide, f"{old!r} is repeated for each item: its axis {axis} follows {place.name_of(dim)}"
    )
    dims = tuple(dim if at == axis else other for at, other in enumerate(value.dims))
    place.given[index] = Value(value.dtype, dims)
    place.body.learn(wide, Value(value.dtype, dims))
