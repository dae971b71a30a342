"""Repair rules of Gather, GatherND and ScatterND whose indices select rows of the one item that the batch had.

With a batch of one, an index into the batch axis can only be 0, so its value carries no information. At other sizes
each item selects from its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx

from ..domain import Array, Dim, SampledValue, fixed, merged_axis
from ..graph_state import upstream
from ..grids import computed_table, constant_array
from ..node_context import NodeContext
from ..operand_edits import emit_range, expand_operand, tile_operand
from ..rule_table import rule
from .constant_lengths import positions
from .reshape import gather_item


@rule("Gather", of_constants=True)
def gather(context: NodeContext) -> list[SampledValue] | None:
    """Take all items for the one of the batch; else compute positions, and let each item gather from its own rows."""
    gathered = gather_item(context)
    if gathered is None:
        positions(context, 1)
        _gather_rows(context)
    return gathered


@rule("GatherND")
def gather_nd(context: NodeContext) -> None:
    """Turn the index into the batch axis of a GatherND into `batch_dims` = 1 (since opset 12)."""
    x, index, dims = context.dims(0), context.input(1), context.known(1)
    if not x or index is None or not dims:
        return
    batch_dims = context.attributes.get("batch_dims", 0)
    if _is_constant(context):
        for dim in x[batch_dims : batch_dims + dims[-1].frozen]:
            _refuse_precomputed(context, dim)
    batch = x[0]
    if batch_dims or batch is None or batch.frozen != 1 or not batch.of_batch:
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
        shape = context.emit_shape([batch, *[1] * (len(dims) - 1)], 1, [rw.input(0)])
        name = rw.before("Expand", [name, shape], hint="items")
    rw.set("batch_dims", 1)
    reason = f"each of {context.name_of(batch)} items gathers from its own rows: batch_dims 0 → 1"
    value = SampledValue(index.dtype, (batch, *dims[1:-1], fixed(dims[-1].frozen - 1)))
    context.set_input(1, name, reason, value)


@rule("ScatterND")
def scatter_nd(context: NodeContext) -> None:
    """Let each item of a ScatterND write into its own rows.

    Data and updates are expanded along the batch, and the number of the item is added to the first index. Constant indices of
    all cells of a feature map are computed from its sizes.
    """
    index = context.input(1)
    data_dims, index_dims, update_dims = (context.known(number) for number in range(3))
    if index is None or data_dims is None or index_dims is None or update_dims is None:
        return
    depth, lead = index_dims[-1].frozen if index_dims else 0, len(index_dims) - 1
    grid = {
        axis: dim
        for axis, (own, dim) in enumerate(zip(index_dims[:-1], update_dims, strict=False))
        if dim.varies and not dim.of_batch and own.frozen == dim.frozen != 1 and not own.varies
    }
    if grid:
        computed_table(context, 1, grid)
    for axis, dim in enumerate(update_dims[lead:], lead):
        if dim.of_batch:
            expand_operand(context, 0, depth + axis - lead, dim)
    if not data_dims or len(update_dims) < max(lead, 1):
        return  # not valid, or one number
    batch = next((dim for dim in (data_dims[0], update_dims[0]) if dim.of_batch), None)
    if batch is None or batch.frozen != 1 or lead < 1 or depth < 1:
        return
    if data_dims[0].frozen != 1 or update_dims[0].frozen != 1 or index_dims[0] != fixed(1):
        return
    expand_operand(context, 0, 0, batch)
    expand_operand(context, 2, 0, batch)
    rw, dtype = context.rw, np.dtype(np.int64)
    limit = context.emit_length(batch, dtype, 1)
    first, step = (rw.constant(np.array(number, dtype), "item") for number in (0, 1))
    item_indices = emit_range(rw, (first, limit, step), lead + 1, 0, hint="items", shape_hint="column")
    column = rw.constant(np.array([1, *[0] * (depth - 1)], dtype), "place")
    added = rw.before("Mul", [item_indices, column], hint="items")
    name = rw.before("Add", [rw.input(1), added], hint="index")
    reason = f"each of {context.name_of(batch)} items writes to its own rows"
    context.set_input(1, name, reason, SampledValue(index.dtype, (batch, *index_dims[1:])))


def _gather_rows(context: NodeContext) -> None:
    """Offset the indices of a Gather for each item, if the batch is merged into the axis that is gathered from."""
    x, index, dims = context.dims(0), context.input(1), context.known(1)
    if not x or index is None or not dims:
        return
    axis = context.attributes.get("axis", 0) % len(x)
    along = x[axis]
    if along is None:
        return
    count = prod(dim.frozen for dim in dims)
    # Indices of half an axis or more were most likely computed for its length, and a few select certain rows.
    if count > 1 and 2 * count >= along.frozen and _is_constant(context):
        _refuse_precomputed(context, along)
    if index.data is not None and not along.varies:
        _tile_rows(context, axis, along, index.data)
        return
    batch, *rest = along.flat_factors()
    if not rest or batch.frozen != 1 or not batch.of_batch:
        return
    each = merged_axis(rest)
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
    reason = f"each of {context.name_of(batch)} items gathers from its own {context.name_of(each)} rows"
    context.set_input(1, name, reason, SampledValue(index.dtype, (batch, *dims[1:])))


def _emit_offset_indices(context: NodeContext, along: Dim, each: Dim, dtype: int, rank: int) -> str:
    """Write nodes that add 0, `each`, 2 * `each`, ... to the indices of the items, up to the length of `along`."""
    rw, source = context.rw, context.rw.input(0)
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(dtype or onnx.TensorProto.INT64))
    limit = context.emit_length(along, kind, 0, [source])
    first = rw.constant(np.array(0, kind), "first")
    rows = np.array(each.frozen, kind)
    step = context.emit_length(each, kind, 0, [source]) if each.varies else rw.constant(rows, "rows")
    starts = emit_range(rw, (first, limit, step), rank, 0, hint="starts", shape_hint="column")
    return rw.before("Add", [rw.input(1), starts], hint="rows")


def _is_constant(context: NodeContext) -> bool:
    """Return whether the indices are a constant, or computed from constants alone."""
    return constant_array(context.graph_state, context.rw.input(1)) is not None


def _refuse_precomputed(context: NodeContext, dim: Dim | None) -> None:
    """Refuse constant indices that were computed for the frozen length of an axis; adaptive pooling exports such indices."""
    if dim is not None and dim.varies and not dim.of_batch:
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
        tile_operand(context, 0, axis, merged_axis([batch, along]), batch)


def _is_counted(context: NodeContext, name: str) -> bool:
    """Return whether an index is computed from a count (Range, CumSum or NonZero), which may number the items already."""
    nodes = context.graph_state.producers
    behind = (nodes[other].op_type for other in upstream(name, nodes) if other in nodes)
    return any(operator in ("Range", "CumSum", "NonZero") for operator in behind)
