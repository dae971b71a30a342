"""Repair rules of operators that combine operands axis by axis: an operand of fixed length beside one that varies."""

from __future__ import annotations

import numpy as np

from ..domain import Dim, Dims, Value
from ..node_context import NodeContext
from ..operand_edits import expand_operand, keep_one_row, tile_operand

__all__ = ["attention", "broadcast", "concat", "gather_elements", "grid_sample", "matmul", "normalization"]


def normalization(context: NodeContext) -> None:
    """Expand the parameters of a BatchNormalization whose one channel is the batch, as in Keras models of single rows."""
    dims = context.dims(0)
    channels = dims[1] if dims is not None and len(dims) > 1 else None
    if channels is not None and channels.varies and channels.frozen == 1:
        for index in range(1, 5):
            expand_operand(context, index, 0, channels)


def concat(context: NodeContext) -> None:
    """Expand the operands of a Concat that are fixed along an axis on which the others vary alike."""
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
                expand_operand(context, index, other, dim)


def broadcast(context: NodeContext) -> None:
    """Make the operands of an element-wise node broadcast along axes that vary.

    A constant with equal rows along the axis becomes one row, which broadcasts to any length. One with different
    rows is tiled once for each item, if the batch is merged into the axis.
    """
    shapes = [context.dims(index) for index in range(len(context.inputs))]
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
                keep_one_row(context, index, len(dims) - back)
    if rank:
        _tile_for_merged_batch(context, [context.dims(index) for index in range(len(context.inputs))], 1)


def matmul(context: NodeContext) -> None:
    """Tile the stack of matrices that a MatMul multiplies each item with, if the batch is merged into a stack axis."""
    shapes = [context.dims(index) for index in range(len(context.inputs))]
    if len(shapes) == 2 and all(dims is not None and len(dims) > 2 for dims in shapes):
        _tile_for_merged_batch(context, shapes, 3)


def attention(context: NodeContext) -> None:
    """Tile the mask of an Attention that has one for each window, if the batch is merged with the windows."""
    query, mask = context.dims(0), context.dims(3)
    if query and mask and len(mask) == 4:
        _tile_for_merged_batch(context, [query[:1], None, None, mask[:1]], 1)


def _tile_for_merged_batch(context: NodeContext, shapes: list[Dims | None], first: int) -> None:
    """Tile fixed axes beside an axis that merges the batch with as many rows; axes count from the last, from `first`."""
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
                tile_operand(context, index, len(shapes[index] or ()) - back, dim, batch)


def grid_sample(context: NodeContext) -> None:
    """Expand the image or the grid of a GridSample along the other's batch."""
    _expand_batch(context, (0, 1), {0})


def gather_elements(context: NodeContext) -> None:
    """Expand the indices (and updates) of GatherElements and ScatterElements along axes that carry the batch."""
    dims = context.dims(0)
    if dims is None:
        return
    rank = len(dims)
    along = context.attributes.get("axis", 0) % max(rank, 1)
    _expand_batch(context, tuple(range(len(context.inputs))), set(range(rank)) - {along})
    if context.node.op_type == "ScatterElements" and rank == 1:
        _inverse_permutation(context)


def _inverse_permutation(context: NodeContext) -> None:
    """Rank as many items as there are where a ScatterElements inverts a permutation of the batch.

    Exporters write it so for sequences sorted by length: zeros[order] = [0, 1, ...], for one item the constant [0].
    """
    order, ranks = context.dims(1), context.integers(2)
    dim = order[0] if order else None
    if dim is None or not context.assignments.carries_batch(dim) or dim.frozen != 1:
        return
    if ranks is None or ranks.any():
        return
    expand_operand(context, 0, 0, dim)
    limit = context.graph_state.emit_length(context.rw, dim, ranks.dtype, context.node.input[1:2])
    first, step = (context.rw.constant(np.array(number, ranks.dtype), "rank") for number in (0, 1))
    name = context.rw.before("Range", [first, limit, step], hint="ranks")
    context.set_input(2, name, f"updates [0] → 0, 1, …, {context.name_of(dim)} - 1")
    context.inputs[2] = Value(context.inputs[0].dtype if context.inputs[0] else 0, (dim,))


def _expand_batch(context: NodeContext, inputs: tuple[int, ...], axes: set[int]) -> None:
    """Expand the inputs along each axis on which those that carry the batch agree."""
    for axis in axes:
        batches: set[Dim] = set()
        for index in inputs:
            dims = context.dims(index)
            if dims is not None and axis < len(dims):
                dim = dims[axis]
                if dim is not None and context.assignments.carries_batch(dim):
                    batches.add(dim)
        if len(batches) == 1:
            dim = batches.pop()
            for index in inputs:
                expand_operand(context, index, axis, dim)
