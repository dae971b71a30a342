"""Repair rules of Gather, GatherND and ScatterND whose indices select rows of the one item that the batch had.

With a batch of one, an index into the batch axis can only be 0, so its value carries no information: at other sizes
each item selects from its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx

from ..domain import Array, Dim, Value, merged_axis
from ..graph_state import UnknownLength
from ..node_context import NodeContext
from ..operand_edits import emit_range, expand_operand, tile_operand

__all__ = ["gather_nd", "gather_rows", "scatter_nd"]


def gather_nd(context: NodeContext) -> None:
    """Turn the index into the batch axis of a GatherND into `batch_dims` = 1 (since opset 12)."""
    x, index = context.input(0), context.input(1)
    if x is None or index is None or not x.dims or not index.known:
        return
    batch_dims = context.attributes.get("batch_dims", 0)
    if not index.varies:
        for dim in x.dims[batch_dims : batch_dims + index.known[-1].frozen]:
            _refuse_precomputed(context, dim)
    if batch_dims:
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
    context.set_input(
        1, name, f"each of {context.name_of(batch)} items gathers from its own rows: batch_dims 0 → 1"
    )
    rest = context.assignments.fixed(dims[-1].frozen - 1)
    context.inputs[1] = Value(index.dtype, (batch, *dims[1:-1], rest))


def scatter_nd(context: NodeContext) -> None:
    """Let each item of a ScatterND write into its own rows.

    Data and updates are expanded along the batch, and the number of the item is added to the first index.
    """
    x, index, updates = (context.input(number) for number in range(3))
    shapes = [value.known if value is not None else None for value in (x, index, updates)]
    if x is None or index is None or None in shapes:
        return
    data_dims, index_dims, update_dims = (shape or () for shape in shapes)
    depth, lead = index_dims[-1].frozen if index_dims else 0, len(index_dims) - 1
    for axis, dim in enumerate(update_dims[lead:], lead):
        if context.assignments.carries_batch(dim):
            expand_operand(context, 0, depth + axis - lead, dim)
    if not data_dims or len(update_dims) < max(lead, 1):
        return  # not valid, or one number
    first_axes = (*data_dims[:1], *update_dims[:1])
    batch = next((dim for dim in first_axes if context.assignments.carries_batch(dim)), None)
    if batch is None or batch.frozen != 1 or lead < 1 or depth < 1:
        return
    if data_dims[0].frozen != 1 or update_dims[0].frozen != 1:
        return
    if index_dims[0].varies or index_dims[0].frozen != 1:
        return
    expand_operand(context, 0, 0, batch)
    expand_operand(context, 2, 0, batch)
    rw, dtype = context.rw, np.dtype(np.int64)
    limit = context.graph_state.emit_length(rw, batch, dtype)
    first, step = (rw.constant(np.array(number, dtype), "item") for number in (0, 1))
    items = emit_range(rw, (first, limit, step), lead + 1, 0, hint="items", shape_hint="column")
    column = rw.constant(np.array([1, *[0] * (depth - 1)], dtype), "place")
    added = rw.before("Mul", [items, column], hint="items")
    name = rw.before("Add", [rw.input(1), added], hint="index")
    context.set_input(1, name, f"each of {context.name_of(batch)} items writes to its own rows")
    context.inputs[1] = Value(index.dtype, (batch, *index_dims[1:]))


def gather_rows(context: NodeContext) -> None:
    """Offset the indices of a Gather for each item, if the batch is merged into the axis that is gathered from."""
    x, index = context.input(0), context.input(1)
    if x is None or index is None or not x.dims or not index.known:
        return
    axis = context.attributes.get("axis", 0) % len(x.dims)
    along, dims = x.dims[axis], index.known
    count = prod(dim.frozen for dim in dims)
    if along is not None and not index.varies and count > 1 and 2 * count >= along.frozen:
        _refuse_precomputed(context, along)
    if along is not None and index.data is not None and not along.varies:
        _tile_rows(context, axis, along, index.data)
        return
    factors = along.flat_factors() if along is not None else []
    if along is None or len(factors) < 2:
        return
    batch, each = factors[0], merged_axis(factors[1:], context.assignments.count)
    if batch.frozen != 1 or not context.assignments.carries_batch(batch):
        return
    if dims[0].frozen != 1 or _is_counted(context, context.rw.input(1)):
        return
    array = index.constant()
    if array is not None and array.size and array.min() < 0:
        context.refuse(
            f"its indices are negative, so they count from the end of axis {axis}, which holds the rows of all items"
            " of the batch",
            1,
        )
    name = _emit_offset_indices(context, along, each, index.dtype, len(dims))
    context.set_input(
        1, name, f"each of {context.name_of(batch)} items gathers from its own {context.name_of(each)} rows"
    )
    context.inputs[1] = Value(index.dtype, (batch, *dims[1:]))


def _emit_offset_indices(context: NodeContext, along: Dim, each: Dim, dtype: int, rank: int) -> str:
    """Write nodes that add 0, `each`, 2 * `each`, ... to the indices of the items, up to the length of `along`."""
    rw, source = context.rw, context.rw.input(0)
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype or onnx.TensorProto.INT64))
    try:
        limit = context.graph_state.emit_length(rw, along, kind, [source])
    except UnknownLength:
        context.refuse_unknown_length(0)
    first = rw.constant(np.array(0, kind), "first")
    if each.varies:
        step = context.graph_state.emit_length(rw, each, kind, [source])
    else:
        step = rw.constant(np.array(each.frozen, kind), "rows")
    starts = emit_range(rw, (first, limit, step), rank, 0, hint="starts", shape_hint="column")
    return rw.before("Add", [rw.input(1), starts], hint="rows")


def _refuse_precomputed(context: NodeContext, dim: Dim | None) -> None:
    """Refuse constant indices that were computed for the frozen length of an axis, as adaptive pooling exports them."""
    if dim is not None and dim.varies and not context.assignments.carries_batch(dim):
        context.refuse(
            f"its indices were computed for an axis of length {dim.frozen}, but that axis changes with"
            f" {context.symbols_in(dim)}",
            1,
        )


def _tile_rows(context: NodeContext, axis: int, along: Dim, data: Sequence[Array]) -> None:
    """Tile the rows of one item if the indices, computed for all items, run past them."""
    if not along.frozen or any(not indices.size for indices in data):
        return
    repeats = tuple(int(indices.max()) // along.frozen + 1 for indices in data)
    batch = Dim(repeats)
    if repeats[0] == 1 and context.assignments.symbol(batch) in context.assignments.batch:
        tile_operand(context, 0, axis, merged_axis([batch, along], context.assignments.count), batch)


def _is_counted(context: NodeContext, name: str) -> bool:
    """Return whether an index is computed from a count (Range, CumSum or NonZero), which may number the items already."""
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
