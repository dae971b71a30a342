"""Gather, GatherND and ScatterND that pick rows of the one item a batch had, by numbers which say nothing of the item.

At the frozen size an index into the batch's axis can only be 0, so what it held says nothing; each item picks its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx

from ..domain import Array, Dim, Value, merged_axis
from ..graph_state import UnknownLength
from ..node_context import NodeContext
from .broadcast import repeat, tile

__all__ = ["gather_nd", "gather_rows", "scatter_nd"]


def gather_nd(context: NodeContext) -> None:
    """Let the batch be an axis of both, and no index into it."""
    x, index = context.input(0), context.input(1)
    if x is None or index is None or not x.dims or not index.known:
        return
    shared = context.attributes.get("batch_dims", 0)
    if not index.varies:
        for dim in x.dims[shared : shared + index.known[-1].frozen]:
            _refuse_precomputed(context, dim)
    if shared:
        return
    batch, dims = x.dims[0], index.known
    if batch is None or batch.frozen != 1 or not context.assignments.carries_batch(batch):
        return
    if len(dims) < 2 or dims[-1].varies or dims[0].frozen != 1 or context.rw.version < 12:
        return
    rw, name = context.rw, context.rw.input(1)
    array = rw.constant_value(name)
    if array is not None:
        name = rw.constant(np.ascontiguousarray(array[..., 1:]), "index")
    else:
        ends = [
            rw.constant(np.array([number], np.int64), "cut") for number in (1, dims[-1].frozen, len(dims) - 1)
        ]
        name = rw.before("Slice", [name, *ends], hint="index")
    if not dims[0].varies:
        shape = context.graph_state.emit_shape(rw, [batch, *[1] * (len(dims) - 1)], [rw.input(0)])
        name = rw.before("Expand", [name, shape], hint="items")
    rw.set("batch_dims", 1)
    context.set_input(1, name, f"axis 0 is {context.name_of(batch)}, in which each item picks from its own")
    context.inputs[1] = Value(
        index.dtype, (batch, *dims[1:-1], context.assignments.fixed(dims[-1].frozen - 1))
    )


def scatter_nd(context: NodeContext) -> None:
    """Write each item's updates into its own: data and updates are there for each, and numbers go on from item to item."""
    x, index, updates = (context.input(number) for number in range(3))
    shapes = [value.known if value is not None else None for value in (x, index, updates)]
    if x is None or index is None or None in shapes:
        return
    data_dims, index_dims, update_dims = (shape or () for shape in shapes)
    depth, lead = index_dims[-1].frozen if index_dims else 0, len(index_dims) - 1
    for axis, dim in enumerate(update_dims[lead:], lead):
        if context.assignments.carries_batch(dim):
            repeat(context, 0, depth + axis - lead, dim)
    batch = next(
        (dim for dim in (*data_dims[:1], *update_dims[:1]) if context.assignments.carries_batch(dim)), None
    )
    if (
        batch is None
        or batch.frozen != 1
        or lead < 1
        or depth < 1
        or data_dims[0].frozen != 1
        or update_dims[0].frozen != 1
    ):
        return
    if index_dims[0].varies or index_dims[0].frozen != 1:
        return
    repeat(context, 0, 0, batch)
    repeat(context, 2, 0, batch)
    rw, kind = context.rw, np.dtype(np.int64)
    limit = context.graph_state.emit_length(rw, batch, np.array(0, kind))
    first, step = (rw.constant(np.array(number, kind), "item") for number in (0, 1))
    items = rw.before("Range", [first, limit, step], hint="items")
    shape = rw.constant(np.array([-1, *[1] * lead], kind), "column")
    column = rw.constant(np.array([1, *[0] * (depth - 1)], kind), "place")
    added = rw.before("Mul", [rw.before("Reshape", [items, shape], hint="items"), column], hint="items")
    name = rw.before("Add", [rw.input(1), added], hint="index")
    context.set_input(1, name, f"axis 0 is {context.name_of(batch)}, in which each item writes to its own")
    context.inputs[1] = Value(index.dtype, (batch, *index_dims[1:]))


def gather_rows(context: NodeContext) -> None:
    """Add to numbers of rows where the item's rows begin, if rows of all items lie on one axis."""
    x, index = context.input(0), context.input(1)
    if x is None or index is None or not x.dims or not index.known:
        return
    axis = context.attributes.get("axis", 0) % len(x.dims)
    along, dims = x.dims[axis], index.known
    count = prod(dim.frozen for dim in dims)
    if along is not None and not index.varies and count > 1 and 2 * count >= along.frozen:
        _refuse_precomputed(context, along)
    if along is not None and index.data is not None and not along.varies:
        _tile_for_items(context, axis, along, index.data)
        return
    factors = along.flat_factors() if along is not None else []
    if (
        along is None
        or len(factors) < 2
        or factors[0].frozen != 1
        or not context.assignments.carries_batch(factors[0])
    ):
        return
    if dims[0].frozen != 1 or _is_counted(context, context.rw.input(1)):
        return
    batch, each = factors[0], merged_axis(factors[1:], context.assignments.count)
    array = index.constant()
    if array is not None and array.size and array.min() < 0:
        context.refuse("its rows are counted from the end, and those of other items come behind them", 1)
    rw, kind = (
        context.rw,
        np.dtype(onnx.helper.tensor_dtype_to_np_dtype(index.dtype or onnx.TensorProto.INT64)),
    )
    try:
        limit = context.graph_state.emit_length(rw, along, np.array(0, kind), [rw.input(0)])
    except UnknownLength:
        context.refuse("no value before it is as long as the rows of all items", 0)
    first = rw.constant(np.array(0, kind), "first")
    own = np.array(each.frozen, kind)
    step = (
        context.graph_state.emit_length(rw, each, own, [rw.input(0)])
        if each.varies
        else rw.constant(own, "rows")
    )
    starts = rw.before("Range", [first, limit, step], hint="starts")
    shape = rw.constant(np.array([-1, *[1] * (len(dims) - 1)], np.int64), "column")
    name = rw.before("Add", [rw.input(1), rw.before("Reshape", [starts, shape], hint="starts")], hint="rows")
    context.set_input(
        1, name, f"each of {context.name_of(batch)} items picks from its own {context.name_of(each)} rows"
    )
    context.inputs[1] = Value(index.dtype, (batch, *dims[1:]))


def _refuse_precomputed(context: NodeContext, dim: Dim | None) -> None:
    """Refuse places that were counted on an axis, as a pooling to few places counts them."""
    if dim is not None and dim.varies and not context.assignments.carries_batch(dim):
        context.refuse(
            f"it picks places that were counted on an axis of {dim.frozen}, and that is to be any length", 1
        )


def _tile_for_items(context: NodeContext, axis: int, along: Dim, data_dims: Sequence[Array]) -> None:
    """Repeat rows that were there for one item if numbers go on for as many items as there are."""
    if any(not index_dims.size for index_dims in data_dims):
        return
    top = tuple(int(index_dims.max()) // along.frozen + 1 for index_dims in data_dims)
    batch = Dim(top)
    if top[0] == 1 and context.assignments.symbol(batch) in context.assignments.batch:
        tile(context, 0, axis, merged_axis([batch, along], context.assignments.count), batch)


def _is_counted(context: NodeContext, name: str) -> bool:
    """Tell whether an index is computed from a count of something, as of the items."""
    seen, queue = set[str](), [name]
    while queue:
        name = queue.pop()
        producer = context.graph_state.producers.get(name)
        if producer is None or name in seen:
            continue
        seen.add(name)
        if producer.op_type in ("Range", "CumSum", "NonZero"):
            return True
        queue.extend(producer.input)
    return False
