"""Scatter, ScatterElements, ScatterND and TensorScatter: their reductions, and the replacements of the last two."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.formula import LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.plugins import Rewriter, adapter, compatible, impossible

from .gather import Dims, index_length, non_negative, row_numbers, to_int64
from .scatter_rounds import REDUCTIONS, reduced_in_rounds

compatible(
    "ScatterElements ScatterND",
    16,
    reason="reduction was added; its default none is the behaviour of older versions",
)
compatible("ScatterElements ScatterND", 18, reason="reduction may be max or min")


@adapter("Scatter", to=11)
def scatter_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Scatter is renamed to ScatterElements."""
    rw.rename("ScatterElements")


impossible(
    "Scatter",
    9,
    why="no operator below opset 9 writes elements at places that are computed",
)


@formula("ScatterElements", "ScatterND", since=18)
def scatter_18(op: Op, data: Value, indices: Value, updates: Value, *, reduction: str) -> Value:
    """`reduction` cannot be max or min: the elements are gathered, compared with the updates and scattered back.

    What changes: max and min become Gathers and Scatters as add and mul do below opset 16, and are as equal.

    Limits: the ranks of data and indices must be known for rounds. ONNX Runtime drops a NaN of the data here; Max and Min keep
    it.
    """
    if reduction in ("max", "min"):
        return _reduced_apart(op, data, indices, updates, reduction)
    return op.itself(data, indices, updates)


@formula("ScatterElements", "ScatterND", since=16)
def scatter_16(op: Op, data: Value, indices: Value, updates: Value, *, reduction: str) -> Value:
    """`reduction` does not exist: elements are gathered, added to or multiplied, and scattered back.

    What changes: `reduction` none is dropped. If the indices are known to differ, add and mul become GatherElements or
    GatherND, Add or Mul, and the node without a reduction. Otherwise the updates are sorted by the element they belong to. A
    Loop then reduces the first, second, third … update of every element. Known indices give those rounds without a Loop if they
    are few.

    Why equal: in one round no element is updated twice, and the updates of each element keep their order.

    Limits: the ranks of data and indices must be known for rounds.
    """
    if reduction != "none":
        return _reduced_apart(op, data, indices, updates, reduction)
    return op.itself(data, indices, updates, reduction=None)


@formula("ScatterElements", since=11)
def scatter_elements(op: Op, data: Value, indices: Value, updates: Value, *, axis: int) -> Value:
    """The old name of ScatterElements is Scatter, which does not support negative indices.

    What changes: the name. The size of the axis is added to negative indices.

    Why equal: version 9 of Scatter has the same text, except for the range of indices. ONNX Runtime 1.3 refuses negative ones
    there.
    """
    attributes = op.attributes
    if axis < 0:
        attributes["axis"] = axis = axis + data.need_rank()
    array = indices.constant
    if array is None or bool((array < 0).any()):
        indices = non_negative(op, to_int64(indices), op.size_of(data, axis))
    return op.Scatter(data, indices, updates, **attributes)


@formula("ScatterND", since=11)
def scatter_nd(op: Op, data: Value, indices: Value, updates: Value) -> Value:
    """There is no ScatterND: Scatter writes rows of the data, whose first axes are flattened, by their number.

    What changes: data, indices and updates are flattened to two axes. The number of a row is the sum of each index times the
    stride of its axis. It is repeated for the elements of the row. Negative indices count from the end of their axis.

    Why equal: an index of q numbers selects a row of the first q axes (onnx/defs/tensor/defs.cc). The nodes only move values.

    Limits: the ranks of data and indices, and the last dim of the indices must be known. If an axis of the data after the first
    q is empty, Reshape fails when the model runs.
    """
    sizes = Dims(op, data)
    count, rank = index_length(op, data, indices, updates.rank), sizes.rank
    split = indices.need_rank() - 1
    whole = sizes.some(range(rank))
    numbers = row_numbers(op, indices, count, sizes)
    rows = data
    if count == rank:
        rows = data.reshape(-1) if rank > 1 else data
        if split != 1:
            numbers, updates = numbers.reshape(-1), updates.reshape(-1)
    else:
        numbers = numbers.reshape(-1, 1)
        if (count, rank) != (1, 2):
            rows = op.Flatten(data, axis=count)
        if (split, rank - count) != (1, 1):
            updates = op.Flatten(updates, axis=split)
        numbers = op.Expand(numbers, op.Shape(updates))
    scattered = op.Scatter(rows, numbers, updates, axis=0)
    return scattered if rows is data else op.Reshape(scattered, whole)


def _reduced_apart(op: Op, data: Value, indices: Value, updates: Value, kind: str) -> Value:
    """Write nodes that compute the reduction; the node itself then scatters the results."""
    by_element = op.operator == "ScatterElements"
    if kind not in REDUCTIONS:
        op.refuse(
            f"has reduction={kind!r}, which is none of none, {', '.join(sorted(REDUCTIONS))}",
            code="no-such-value",
        )
    axis = int(op.rw.get("axis", 0)) if by_element else None
    if not _distinct(data, indices, axis):
        return reduced_in_rounds(op, data, indices, updates, kind)
    old = op.GatherElements(data, indices, axis=axis) if by_element else op.GatherND(data, indices)
    op.note(f"reduction {kind} is computed on the gathered elements")
    return op.itself(data, indices, op.write(REDUCTIONS[kind], old, updates), reduction=None)


def _distinct(data: Value, of: Value, axis: int | None) -> bool:
    """Return whether the indices are known, and select no element twice; an axis of None is that of ScatterND."""
    indices = of.constant
    if indices is None:
        return False
    if bool((indices < 0).any()) and bool((indices >= 0).any()):
        # The same place may be counted from both ends.
        static = data.static
        if static is None:
            return False
        size = np.array(static, np.int64)[slice(indices.shape[-1]) if axis is None else axis]
        indices = np.where(indices < 0, indices + size, indices)
    if axis is not None:
        ordered = np.sort(indices, axis=axis)
        return not bool((np.diff(ordered, axis=axis) == 0).any())
    rows = indices.reshape(-1, indices.shape[-1])
    return len(np.unique(rows, axis=0)) == len(rows)


@formula("TensorScatter", since=24, types=LostTypes.OWN)
def tensor_scatter(
    op: Op, cache: Value, update: Value, starts: Value | None, *, axis: int, mode: str
) -> Value:
    """The update is scattered to the places that follow the index of its item.

    What changes: ScatterElements along `axis`, at the indices 0, 1, 2 … plus the item's own, modulo the size of the cache in mode
    circular.

    Why equal: the text of the standard; elements are moved. Bit for bit.
    """
    rank = cache.need_rank()
    axis %= rank
    positions = op.iota(op.size_of(update, axis)).as_written().reshape(-1, *[1] * (rank - 1 - axis))
    if starts is not None:
        positions = starts.reshape(-1, *[1] * (rank - 1)) + positions
    if mode == "circular":
        positions = op.Mod(positions, op.size_of(cache, axis))
    positions = op.Expand(positions, op.Shape(update))
    op.rw.scope.record_type(positions.name, ValueType(int(TensorProto.INT64), update.shape))
    return op.ScatterElements(cache, positions, update, axis=axis)
