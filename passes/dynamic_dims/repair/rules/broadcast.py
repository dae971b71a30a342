"""Repair rules of operators that combine operands axis by axis: an operand of fixed length beside one that varies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ..domain import Dim, Dims, SampledValue
from ..domain.values import dtype_of
from ..grids import computed_table
from ..node_context import NodeContext
from ..operand_edits import expand_operand, keep_one_row, tile_operand
from ..rule_table import rule
from .constant_lengths import positions, positions_in_any_input


@rule("BatchNormalization")
def normalization(context: NodeContext) -> None:
    """Expand the parameters of a BatchNormalization whose one channel is the batch, as in Keras models of single rows."""
    dims = context.dims(0)
    channels = dims[1] if dims is not None and len(dims) > 1 else None
    if channels is not None and channels.varies and channels.frozen == 1:
        for index in range(1, 5):
            expand_operand(context, index, 0, channels)


@rule("Concat")
def concat(context: NodeContext) -> None:
    """Expand the operands of a Concat that are fixed along an axis on which the others vary alike, or compute them."""
    shapes = [context.known(index) or () for index in range(len(context.inputs))]
    rank = len(shapes[0])
    if not rank or any(len(shape) != rank for shape in shapes):
        return
    along = context.attributes.get("axis", 1) % rank
    others = {axis: _one_length(shape[axis] for shape in shapes) for axis in range(rank) if axis != along}
    for index, shape in enumerate(shapes):
        lengths = {
            axis: dim
            for axis, dim in others.items()
            if dim is not None and not shape[axis].varies and shape[axis].frozen == dim.frozen != 1
        }
        # Equal rows need no law, because an Expand repeats one of them.
        if lengths and not _has_equal_rows(context, index, lengths):
            computed_table(context, index, lengths)
    for axis in others:
        _expand_alike(context, range(len(shapes)), axis, [shape[axis] for shape in shapes])


def _has_equal_rows(context: NodeContext, index: int, axes: Iterable[int]) -> bool:
    """Return whether the rows of a constant are equal along each of these axes."""
    array = context.rw.constant_value(context.rw.input(index))
    return array is not None and all(bool((array == array.take([0], axis)).all()) for axis in axes)


@rule("Add", "Sub", "Mul", of_constants=True)
def broadcast_positions(context: NodeContext) -> None:
    """Compute positions for a length that varies, then broadcast."""
    positions_in_any_input(context)
    broadcast(context)


@rule("Div", "Pow", "Where", "Min", "Max", "Sum", "And", "Or")
def broadcast(context: NodeContext) -> None:
    """Make the operands of an element-wise node broadcast along axes that vary.

    A constant with equal rows along the axis becomes one row, which broadcasts to any length. One with different
    rows is tiled once for each item, if the batch is merged into the axis.
    """
    shapes = _shapes(context)
    rank = max((len(dims) for dims in shapes if dims is not None), default=0)
    for back in range(1, rank + 1):
        along = {index: dims[-back] for index, dims in enumerate(shapes) if dims and len(dims) >= back}
        dim = _one_length(along.values())
        if dim is None:
            continue
        for index, own in along.items():
            if own is not None and not own.varies and own.frozen == dim.frozen != 1:
                keep_one_row(context, index, len(shapes[index] or ()) - back)
    _compute_tables(context)
    if rank:
        _tile_for_merged_batch(context, _shapes(context), 1)


def _one_length(dims: Iterable[Dim | None]) -> Dim | None:
    """Return the one varying length among these, if possible one that has factors or terms."""
    varying = [dim for dim in dims if dim is not None and dim.varies]
    if len(set(varying)) != 1:
        return None
    # Equal dims can differ in their factors, and a table needs those to find the feature maps.
    return max(varying, key=lambda dim: bool(dim.factors or dim.terms))


def _compute_tables(context: NodeContext) -> None:
    """Compute constants of as many rows as a varying axis is long, which hold a number of their own for each row."""
    shapes = _shapes(context)
    rank = max((len(dims) for dims in shapes if dims is not None), default=0)
    lengths: dict[int, dict[int, Dim]] = {}
    for back in range(1, rank + 1):
        along = {index: dims[-back] for index, dims in enumerate(shapes) if dims and len(dims) >= back}
        dim = _one_length(along.values())
        for index, own in along.items() if dim is not None else ():
            if dim is not None and own is not None and not own.varies and own.frozen == dim.frozen != 1:
                lengths.setdefault(index, {})[len(shapes[index] or ()) - back] = dim
    for index, axes in lengths.items():
        computed_table(context, index, dict(sorted(axes.items())))


@rule("MatMul")
@rule("FusedMatMul", domain="com.microsoft")
def matmul(context: NodeContext) -> None:
    """Tile the stack of matrices that a MatMul multiplies each item with, if the batch is merged into a stack axis."""
    shapes = _shapes(context)
    # Only the axes before the last two are a stack of matrices.
    if len(shapes) == 2 and all(dims is not None and len(dims) > 2 for dims in shapes):
        _tile_for_merged_batch(context, shapes, 3)


@rule("Attention")
def attention(context: NodeContext) -> None:
    """Tile the mask of an Attention that has one for each window, if the batch is merged with the windows."""
    query, mask = context.dims(0), context.dims(3)
    if query and mask and len(mask) == 4:
        _tile_for_merged_batch(context, [query[:1], None, None, mask[:1]], 1)


def _shapes(context: NodeContext) -> list[Dims | None]:
    return [context.dims(index) for index in range(len(context.inputs))]


def _tile_for_merged_batch(context: NodeContext, shapes: Sequence[Dims | None], first: int) -> None:
    """Tile fixed axes beside an axis that merges the batch with as many rows; axes count from the last, from `first`."""
    for back in range(first, max(len(dims) for dims in shapes if dims is not None) + 1):
        along = {index: dims[-back] for index, dims in enumerate(shapes) if dims and len(dims) >= back}
        merged = {dim for dim in along.values() if dim is not None and dim.factors and dim.varies}
        if len(merged) != 1:
            continue
        (dim,) = merged
        batch = dim.flat_factors()[0]
        if batch.frozen != 1 or not batch.of_batch:
            continue
        each = tuple(size * dim.frozen for size in batch.sizes)
        for index, own in along.items():
            if own is not None and not own.varies and own.frozen == dim.frozen > 1 and each == dim.sizes:
                tile_operand(context, index, len(shapes[index] or ()) - back, dim, batch)


@rule("GridSample")
def grid_sample(context: NodeContext) -> None:
    """Expand the image or the grid of a GridSample to get the batch of the other one."""
    _expand_batch(context, (0, 1), {0})


@rule("GatherElements", of_constants=True)
def gather_elements(context: NodeContext) -> None:
    """Compute positions for a length that varies, then expand the indices as those of ScatterElements."""
    positions(context, 1)
    scatter_elements(context)


@rule("ScatterElements")
def scatter_elements(context: NodeContext) -> None:
    """Expand the indices (and updates) of GatherElements and ScatterElements along axes that carry the batch."""
    dims = context.dims(0)
    if dims is None:
        return
    rank = len(dims)
    along = context.attributes.get("axis", 0) % max(rank, 1)
    _expand_batch(context, range(len(context.inputs)), set(range(rank)) - {along})
    if context.node.op_type == "ScatterElements" and rank == 1:
        _inverse_permutation(context)


def _inverse_permutation(context: NodeContext) -> None:
    """Rank as many items as there are where a ScatterElements inverts a permutation of the batch.

    Exporters write it so for sequences sorted by length: zeros[order] = [0, 1, ...], for one item the constant [0].
    """
    x, order, ranks = context.input(0), context.dims(1), context.integers(2)
    dim = order[0] if order else None
    if dim is None or not dim.of_batch or dim.frozen != 1 or ranks is None or ranks.any():
        return
    expand_operand(context, 0, 0, dim)
    limit = context.emit_length(dim, ranks.dtype, 2, context.node.input[1:2])
    first, step = (context.rw.constant(np.array(number, ranks.dtype), "rank") for number in (0, 1))
    name = context.rw.before("Range", [first, limit, step], hint="ranks")
    value = SampledValue(x.dtype if x is not None else 0, (dim,))
    context.set_input(2, name, f"updates [0] → 0, 1, …, {context.name_of(dim)} - 1", value)


def _expand_batch(context: NodeContext, inputs: Sequence[int], axes: set[int]) -> None:
    """Expand the inputs along each axis on which those that carry the batch agree."""
    for axis in axes:
        shapes = [context.dims(index) or () for index in inputs]
        along = [shape[axis] for shape in shapes if axis < len(shape)]
        _expand_alike(context, inputs, axis, [dim for dim in along if dim is not None and dim.of_batch])


def _expand_alike(context: NodeContext, inputs: Iterable[int], axis: int, dims: Iterable[Dim]) -> None:
    """Expand an axis of these inputs to the one varying length among `dims`."""
    varying = {dim for dim in dims if dim.varies}
    if len(varying) == 1:
        (dim,) = varying
        for index in inputs:
            expand_operand(context, index, axis, dim)


@rule("LSTM", "GRU", "RNN")
@rule("DynamicQuantizeLSTM", domain="com.microsoft")
def recurrent(context: NodeContext) -> None:
    """Expand the initial states and the sequence lengths of an LSTM, GRU or RNN along the batch.

    Initial states are inputs 5 and, of an LSTM, 6; sequence lengths are input 4.
    """
    dims = context.dims(0)
    if dims is None or len(dims) != 3:
        return
    axis = 0 if context.attributes.get("layout", 0) else 1
    batch = dims[axis]
    if batch is None or not batch.varies:
        return
    for index in (5, 6) if context.node.op_type.endswith("LSTM") else (5,):
        expand_operand(context, index, axis, batch)
    _read_whole_length(context, 4, dims[1 - axis])
    expand_operand(context, 4, 0, batch)


@rule("ReverseSequence")
def reverse_sequence(context: NodeContext) -> None:
    """Expand the sequence lengths of a ReverseSequence along the batch, and read them from the time axis."""
    dims = context.dims(0)
    if dims is None:
        return
    _read_whole_length(context, 1, dims[context.attributes.get("time_axis", 0)])
    batch = dims[context.attributes.get("batch_axis", 1)]
    if batch is not None and batch.varies:
        expand_operand(context, 1, 0, batch)


def _read_whole_length(context: NodeContext, index: int, time: Dim | None) -> None:
    """Replace constant sequence lengths that equal the length of the time axis by that axis's length."""
    array = context.constant(index)
    if array is None or not array.size or time is None or not time.varies:
        return
    if (array != time.frozen).any():
        context.refuse(
            f"its constant sequence lengths are not the length of the time axis, {time.frozen}, and that axis changes"
            f" with {context.symbols_in(time)}",
            index,
        )
    name = context.emit_shape([time], index, context.node.input[:1])
    if array.dtype != np.int64:
        name = context.rw.before("Cast", [name], hint="lengths", to=dtype_of(array))
    if array.size > 1:
        shape = context.rw.constant(np.array(array.shape, np.int64), "items")
        name = context.rw.before("Expand", [name, shape], hint="lengths")
    reason = f"sequence lengths {time.frozen} → {context.name_of(time)}, the length of the time axis"
    context.replace_input(index, name, SampledValue(dtype_of(array), context.dims(index)), reason)
