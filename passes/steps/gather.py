"""GatherElements, GatherND and OneHot: below opset 11 Gathers replace them, with row numbers computed from indices and dims."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value, formula
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.messages import count_of

__all__ = ["Dims", "along", "element_numbers", "index_length", "non_negative", "row_numbers", "to_int64"]


def to_int64(indices: Value) -> Value:
    """Return indices as int64."""
    indices.need_dtype()
    return indices.cast(TensorProto.INT64)


def non_negative(op: Op, indices: Value, sizes: Value) -> Value:
    """Return int64 indices counted from the front. `sizes` holds the sizes of their axes, and broadcasts against them."""
    array, size = indices.constant, sizes.constant
    if array is not None and bool((array >= 0).all()):
        return indices
    if array is not None and size is not None:
        return op.constant(np.where(array < 0, array + size, array)).as_written()
    below = op.Cast(op.Less(indices, op.constant(0)), to=TensorProto.INT64)
    return indices + below * sizes


def along(value: Value, axis: int, rank: int) -> Value:
    """Return a value of one axis in `rank` axes, with its elements along `axis` and length 1 elsewhere."""
    if rank == 1:
        return value
    return value.as_written().reshape(*(-1 if other == axis else 1 for other in range(rank)))


class Dims:
    """The dims of a value as int64 tensors of one axis. Fixed dims are constants, and others are read when the model runs."""

    def __init__(self, op: Op, value: Value) -> None:
        self._op, self._value = op, value
        self._read: Value | None = None
        self.rank = value.need_rank()

    def some(self, axes: Sequence[int]) -> Value:
        """Return the sizes of these axes."""
        shape = self._value.shape or ()
        fixed = [size for axis in axes if (size := shape[axis]) is not None]
        if len(fixed) == len(axes):
            return self._op.constant(np.array(fixed, np.int64))
        self._read = self._op.Shape(self._value) if self._read is None else self._read
        if list(axes) == list(range(self.rank)):
            return self._read
        return self._op.Gather(self._read, list(axes), axis=0)

    def product(self, axes: Sequence[int]) -> Value:
        """Return the product of the sizes of these axes, as a tensor of one element."""
        sizes = self.some(axes)
        array = sizes.constant
        if array is not None:
            return self._op.constant([prod(array.tolist())])
        return sizes if len(axes) == 1 else self._op.ReduceProd(sizes, [0])

    def strides(self, count: int) -> Value:
        """Return the stride of each of the first `count` axes, counted in blocks of the axes after them."""
        parts = [self.product(range(axis + 1, count)) for axis in range(count)]
        arrays = [part.constant for part in parts]
        if all(part is not None for part in arrays):
            return self._op.constant([int(part[0]) for part in arrays if part is not None])
        return self._op.Concat(*parts, axis=0)

    def places(self, axis: int) -> Value:
        """Return the positions along an axis: 0, 1, …"""
        return self._op.iota(self.some([axis]))


@formula("GatherElements", since=11)
def gather_elements(op: Op, data: Value, indices: Value, *, axis: int) -> Value:
    """GatherElements begins with opset 11, so a Gather selects the elements of the flattened data by number.

    What changes: the number of an element is a sum over all axes. The index is multiplied by the stride of `axis`, and the
    position in each other axis by the stride of that axis. The strides are computed from the data's shape. Negative indices
    count from the end of the axis.

    Why equal: out[i][j] = data[index[i][j]][j] (onnx/defs/tensor/defs.cc). Values are moved, never computed with.
    """
    number = element_numbers(op, data, indices, axis)
    return op.Gather(data.reshape(-1) if data.need_rank() > 1 else data, number, axis=0)


@formula("GatherND", since=12)
def gather_nd_12(op: Op, data: Value, indices: Value, *, batch_dims: int) -> Value:
    """`batch_dims` begins with opset 12, so the positions in the batch axes are put in front of the indices.

    What changes: a counter for each batch axis becomes a further column of the indices. A node without batch axes is
    unchanged.

    Why equal: with batch_dims b, the indices apply to data[i] for each position i in the first b axes. Both inputs share
    these axes.
    """
    if batch_dims == 0:
        return op.itself(data, indices, batch_dims=None)
    dims = Dims(op, indices)
    rank = dims.rank
    if not 0 < batch_dims < rank:
        op.refuse(
            f"has batch_dims={batch_dims}, and indices of {count_of(rank, 'axis')}", code="invalid-node"
        )
    rows = op.Concat(dims.some(range(rank - 1)), [1], axis=0)
    columns = [op.Expand(along(dims.places(axis), axis, rank), rows) for axis in range(batch_dims)]
    whole = op.Concat(*columns, indices, axis=rank - 1)
    shape = indices.shape or ()
    count = shape[-1]
    longer = ValueType(TensorProto.INT64, (*shape[:-1], None if count is None else count + batch_dims))
    op.rw.scope.record_type(whole.name, longer)
    return op.itself(data, whole, batch_dims=None)


@formula("GatherND", since=11)
def gather_nd(op: Op, data: Value, indices: Value) -> Value:
    """GatherND begins with opset 11, so a Gather selects rows of the data by number.

    What changes: the first axes of the data are flattened into rows. The number of a row is the sum of each index times the
    stride of its axis. Negative indices count from the end of their axis.

    Why equal: an index of q numbers selects a row of the first q axes (onnx/defs/tensor/defs.cc). Values are moved, never
    computed with.

    Limits: the rank of the data and of the indices must be known. The last dim of the indices or the rank of the result must
    be known too. If an axis after the first q is empty, Reshape fails when the model runs.
    """
    shape = op.output_shape()
    count = index_length(op, data, indices, None if shape is None else len(shape))
    sizes = Dims(op, data)
    number = row_numbers(op, indices, count, sizes)
    if count < sizes.rank:
        rest = sizes.some(range(count, sizes.rank)) if count > 1 else None
        rows = data if rest is None else op.Reshape(data, op.Concat([-1], rest, axis=0))
    else:
        rows = data.reshape(-1)
    return op.Gather(rows, number, axis=0)


def element_numbers(op: Op, data: Value, indices: Value, axis: int) -> Value:
    """Return the number, in the flattened data, of the element that each index selects."""
    sizes = Dims(op, data)
    rank = sizes.rank
    axis %= max(rank, 1)
    number = non_negative(op, to_int64(indices), sizes.some([axis]))
    if rank == 1:
        return number
    dims = Dims(op, indices)
    offset = None
    for other in range(rank):
        if other == axis:
            continue
        part = along(dims.places(other), other, rank)
        if other < rank - 1:
            part = part * sizes.product(range(other + 1, rank))
        offset = part if offset is None else offset + part
    if axis < rank - 1:
        number = number * sizes.product(range(axis + 1, rank))
    return number if offset is None else number + offset


def index_length(op: Op, data: Value, indices: Value, rows: int | None) -> int:
    """Return how many axes of the data an index selects in, from the last dim of the indices or from the ranks.

    ScatterND's updates and GatherND's result hold rows. A row has one axis for each axis of the data that no index selects
    in. `rows` is the rank of the updates or the result, or None if it is unknown.
    """
    rank = indices.need_rank()
    shape = indices.shape
    count = shape[rank - 1] if shape and rank else None
    if count is None and rows is not None:
        count = data.need_rank() + rank - 1 - rows
    if not count or count < 0:
        op.refuse(
            f"the last dim of {indices.name!r}, which says how many axes are indexed, must be known below opset"
            f" {op.version + 1}, and the shape is {list(shape or ())}",
            code="needs-shape",
            hint=f"declare the shape of {indices.name!r} in the value_info of the model",
        )
    axes = data.rank
    if axes is not None and count > axes:
        op.refuse(
            f"its indices {indices.name!r} index {count} axes, and {data.name!r} has {axes}",
            code="invalid-node",
        )
    return count


def row_numbers(op: Op, indices: Value, count: int, sizes: Dims) -> Value:
    """Return the number of the row that each index of `count` numbers selects. The result lacks the indices' last axis."""
    last = indices.need_rank() - 1
    indices = non_negative(op, indices, sizes.some(range(count)))
    if count == 1:
        return op.Squeeze(indices, [last])
    return op.ReduceSum(indices * sizes.strides(count), [last], keepdims=False)


_T = TensorProto


@formula("OneHot", since=11)
def one_hot_11(op: Op, indices: Value, depth: Value, values: Value, *, axis: int) -> Value:
    """Negative indices and a negative `axis` are replaced by those counted from the front.

    What changes: depth is added to negative indices, and a negative axis other than -1 is replaced. Indices that are known
    not to be negative stay.

    Why equal: below version 11 an index outside of [0, depth) gives a row of off values (onnx/defs/tensor/old.cc). Indices
    below -depth stay negative.
    """
    front = {"axis": axis + indices.need_rank() + 1} if axis < -1 else {}
    array = indices.constant
    if array is not None and bool((array >= 0).all()):
        return op.itself(indices, depth, values, **front)
    dtype = indices.need_dtype()
    if dtype in (_T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64):
        return op.itself(indices, depth, values, **front)
    # Fractions are cut off before the comparison, as the operator does.
    whole = indices if dtype == _T.INT32 else indices.cast(_T.INT64)
    of_type = whole.need_dtype()
    below = (whole < 0).cast(of_type)
    size = op.Reshape(depth.cast(of_type), [])
    return op.itself((whole + below * size).cast(dtype), depth, values, **front)


@formula("OneHot", since=9)
def one_hot(op: Op, indices: Value, depth: Value, values: Value, *, axis: int) -> Value:
    """OneHot begins with opset 9, so the indices are compared with 0, 1, 2 … and a Gather selects the values.

    Why equal: an element is the on value if its position on the new axis is the index. Values are moved, never computed with.
    """
    rank = indices.need_rank()
    axis %= rank + 1
    size = depth.cast(_T.INT64).reshape(1)
    positions = along(op.iota(size), axis, rank + 1)
    index = op.Unsqueeze(indices.cast(_T.INT64), [axis])
    return op.Gather(values, (index == positions).cast(_T.INT64), axis=0)
