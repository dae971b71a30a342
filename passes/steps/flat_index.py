"""Elements addressed by one number: dims, places and indices without negatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value

__all__ = ["Dims", "along", "non_negative", "to_int64"]


def to_int64(indices: Value) -> Value:
    """Return indices as int64."""
    indices.need_dtype()
    return indices.cast(TensorProto.INT64)


def non_negative(op: Op, indices: Value, sizes: Value) -> Value:
    """Return indices of int64 counted from the front; `sizes`, of axes of that size, is broadcast against them."""
    known, size = indices.constant, sizes.constant
    if known is not None and bool((known >= 0).all()):
        return indices
    if known is not None and size is not None:
        return op.constant(np.where(known < 0, known + size, known)).as_written()
    below = op.Cast(op.Less(indices, op.constant(0)), to=TensorProto.INT64)
    return indices + below * sizes


def along(value: Value, axis: int, rank: int) -> Value:
    """Return a value of one axis as the axis `axis` of a value of `rank` axes, whose others have one element."""
    if rank == 1:
        return value
    return value.as_written().reshape(*(-1 if other == axis else 1 for other in range(rank)))


class Dims:
    """The dims of a value as int64 tensors of one axis: constants where they are fixed, else read when the model runs."""

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
        """Return the product of the sizes of these axes, of one element."""
        sizes = self.some(axes)
        known = sizes.constant
        if known is not None:
            return self._op.constant([prod(known.tolist())])
        return sizes if len(axes) == 1 else self._op.ReduceProd(sizes, [0])

    def strides(self, count: int) -> Value:
        """Return how far apart, counted in blocks of the axes from `count` on, neighbours are in each of the first axes."""
        parts = [self.product(range(axis + 1, count)) for axis in range(count)]
        known = [part.constant for part in parts]
        if all(part is not None for part in known):
            return self._op.constant([int(part[0]) for part in known if part is not None])
        return self._op.Concat(*parts, axis=0)

    def places(self, axis: int) -> Value:
        """Return the indices of the elements of each window, counted from the start of the padding."""
        return self._op.iota(self.some([axis]))
