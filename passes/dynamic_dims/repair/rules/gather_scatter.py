"""Gather, GatherND and ScatterND that pick rows of the one item a batch had, by numbers which say nothing of the item.

At the frozen size an index into the batch's axis can only be 0, so what it held says nothing; each item picks its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx

from ..domain import Array, Dim, Value, product
from ..graph_state import UnknownLengthError
from ..node_context import Place
from .broadcast import repeat, tile

__all__ = ["gather_nd", "rows", "scatter_nd"]


def gather_nd(place: Place) -> None:
    """Let the batch be an axis of both, and no index into it."""
    x, index = place.input(0), place.input(1)
    if x is None or index is None or not x.dims or not index.known:
        return
    shared = place.attributes.get("batch_dims", 0)
    if not index.varies:
        for dim in x.dims[shared : shared + index.known[-1].frozen]:
            _refuse_baked(place, dim)
    if shared:
        return
    batch, dims = x.dims[0], index.known
    if batch is None or batch.frozen != 1 or not place.worlds.carries_batch(batch):
        return
    if len(dims) < 2 or dims[-1].varies or dims[0].frozen != 1 or place.rw.version < 12:
        return
    rw, name = place.rw, place.rw.input(1)
    held = rw.constant_value(name)
    if held is not None:
        name = rw.constant(np.ascontiguousarray(held[..., 1:]), "index")
    else:
        ends = [
            rw.constant(np.array([number], np.int64), "cut") for number in (1, dims[-1].frozen, len(dims) - 1)
        ]
        name = rw.before("Slice", [name, *ends], hint="index")
    if not dims[0].varies:
        shape = place.body.shape(rw, [batch, *[1] * (len(dims) - 1)], [rw.input(0)])
        name = rw.before("Expand", [name, shape], hint="items")
    rw.set("batch_dims", 1)
    place.set_input(1, name, f"axis 0 is {place.name_of(batch)}, in which each item picks from its own")
    place.given[1] = Value(index.dtype, (batch, *dims[1:-1], place.worlds.fixed(dims[-1].frozen - 1)))


def scatter_nd(place: Place) -> None:
    """Write each item's updates into its own: data and updates are there for each, and numbers go on from item to item."""
    x, index, updates = (place.input(number) for number in range(3))
    shapes = [value.known if value is not None else None for value in (x, index, updates)]
    if x is None or index is None or None in shapes:
        return
    data, numbers, news = (shape or () for shape in shapes)
    depth, lead = numbers[-1].frozen if numbers else 0, len(numbers) - 1
    for axis, dim in enumerate(news[lead:], lead):
        if place.worlds.carries_batch(dim):
            repeat(place, 0, depth + axis - lead, dim)
    batch = next((dim for dim in (*data[:1], *news[:1]) if place.worlds.carries_batch(dim)), None)
    if (
        batch is None
        or batch.frozen != 1
        or lead < 1
        or depth < 1
        or data[0].frozen != 1
        or news[0].frozen != 1
    ):
        return
    if numbers[0].varies or numbers[0].frozen != 1:
        return
    repeat(place, 0, 0, batch)
    repeat(place, 2, 0, batch)
    rw, kind = place.rw, np.dtype(np.int64)
    limit = place.body.scalar(rw, batch, np.array(0, kind))
    first, step = (rw.constant(np.array(number, kind), "item") for number in (0, 1))
    items = rw.before("Range", [first, limit, step], hint="items")
    shape = rw.constant(np.array([-1, *[1] * lead], kind), "column")
    column = rw.constant(np.array([1, *[0] * (depth - 1)], kind), "place")
    added = rw.before("Mul", [rw.before("Reshape", [items, shape], hint="items"), column], hint="items")
    name = rw.before("Add", [rw.input(1), added], hint="index")
    place.set_input(1, name, f"axis 0 is {place.name_of(batch)}, in which each item writes to its own")
    place.given[1] = Value(index.dtype, (batch, *numbers[1:]))


def rows(place: Place) -> None:
    """Add to numbers of rows where the item's rows begin, if rows of all items lie on one axis."""
    x, index = place.input(0), place.input(1)
    if x is None or index is None or not x.dims or not index.known:
        return
    axis = place.attributes.get("axis", 0) % len(x.dims)
    along, dims = x.dims[axis], index.known
    count = prod(dim.frozen for dim in dims)
    if along is not None and not index.varies and count > 1 and 2 * count >= along.frozen:
        _refuse_baked(place, along)
    if along is not None and index.data is not None and not along.varies:
        _enough(place, axis, along, index.data)
        return
    leaves = along.leaves() if along is not None else []
    if along is None or len(leaves) < 2 or leaves[0].frozen != 1 or not place.worlds.carries_batch(leaves[0]):
        return
    if dims[0].frozen != 1 or _counts(place, place.rw.input(1)):
        return
    batch, each = leaves[0], product(leaves[1:], place.worlds.count)
    held = index.constant()
    if held is not None and held.size and held.min() < 0:
        place.block("its rows are counted from the end, and those of other items come behind them", 1)
    rw, kind = place.rw, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(index.dtype or onnx.TensorProto.INT64))
    try:
        limit = place.body.scalar(rw, along, np.array(0, kind), [rw.input(0)])
    except UnknownLengthError:
        place.block("no value before it is as long as the rows of all items", 0)
    first = rw.constant(np.array(0, kind), "first")
    own = np.array(each.frozen, kind)
    step = place.body.scalar(rw, each, own, [rw.input(0)]) if each.varies else rw.constant(own, "rows")
    starts = rw.before("Range", [first, limit, step], hint="starts")
    shape = rw.constant(np.array([-1, *[1] * (len(dims) - 1)], np.int64), "column")
    name = rw.before("Add", [rw.input(1), rw.before("Reshape", [starts, shape], hint="starts")], hint="rows")
    place.set_input(
        1, name, f"each of {place.name_of(batch)} items picks from its own {place.name_of(each)} rows"
    )
    place.given[1] = Value(index.dtype, (batch, *dims[1:]))


def _refuse_baked(place: Place, dim: Dim | None) -> None:
    """Refuse places that were counted on an axis, as a pooling to few places counts them."""
    if dim is not None and dim.varies and not place.worlds.carries_batch(dim):
        place.block(
            f"it picks places that were counted on an axis of {dim.frozen}, and that is to be any length", 1
        )


def _enough(place: Place, axis: int, along: Dim, data: Sequence[Array]) -> None:
    """Repeat rows that were there for one item if numbers go on for as many items as there are."""
    if any(not numbers.size for numbers in data):
        return
    top = tuple(int(numbers.max()) // along.frozen + 1 for numbers in data)
    batch = Dim(top)
    if top[0] == 1 and place.worlds.symbol(batch) in place.worlds.batch:
        tile(place, 0, axis, product([batch, along], place.worlds.count), batch)


def _counts(place: Place, name: str) -> bool:
    """Tell whether an index is computed from a count of something, as of the items."""
    seen, queue = set[str](), [name]
    while queue:
        name = queue.pop()
        maker = place.body.makers.get(name)
        if maker is None or name in seen:
            continue
        seen.add(name)
        if maker.op_type in ("Range", "CumSum", "NonZero"):
            return True
        queue.extend(maker.input)
    return False
