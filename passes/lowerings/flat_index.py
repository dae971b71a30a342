"""Helpers of downward steps that address elements by one number: dims, places and indices without negatives."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from onnx import TensorProto

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, iota

__all__ = ["Dims", "along", "non_negative", "to_int64"]


def to_int64(rw: LoweringRewriter, indices: str) -> str:
    """Return indices as int64."""
    rw.need_dtype(indices)
    return cast(rw, indices, TensorProto.INT64, hint="indices")


def non_negative(rw: LoweringRewriter, indices: str, sizes: str) -> str:
    """Return indices of int64 counted from the front; `sizes`, of axes of that size, is broadcast against them."""
    known, size = rw.known(indices), rw.known(sizes)
    if known is not None and bool((known >= 0).all()):
        return indices
    if known is not None and size is not None:
        return rw.constant(np.where(known < 0, known + size, known), "indices")
    below = rw.before("Less", [indices, rw.constant(np.array(0, np.int64), "zero")], hint="negative")
    below = rw.before("Cast", [below], hint="negative", to=int(TensorProto.INT64))
    return rw.before("Add", [indices, rw.before("Mul", [below, sizes], hint="wrapped")], hint="indices")


def along(rw: LoweringRewriter, value: str, axis: int, rank: int) -> str:
    """Return a value of one axis as the axis `axis` of a value of `rank` axes, whose others have one element."""
    if rank == 1:
        return value
    shape = [-1 if other == axis else 1 for other in range(rank)]
    return rw.before("Reshape", [value, integers(rw, *shape)], hint="along")


class Dims:
    """The dims of a value as int64 tensors of one axis: constants where they are fixed, else read when the model runs."""

    def __init__(self, rw: LoweringRewriter, value: str) -> None:
        self._rw, self._value, self._read = rw, value, ""
        self.rank = rw.need_rank(value)

    def some(self, axes: Sequence[int]) -> str:
        """Return the sizes of these axes."""
        shape = self._rw.shape(self._value) or ()
        fixed = [size for axis in axes if (size := shape[axis]) is not None]
        if len(fixed) == len(axes):
            return integers(self._rw, *fixed)
        self._read = self._read or self._rw.before("Shape", [self._value], hint="shape")
        if list(axes) == list(range(self.rank)):
            return self._read
        return self._rw.before("Gather", [self._read, integers(self._rw, *axes)], hint="sizes", axis=0)

    def product(self, axes: Sequence[int]) -> str:
        """Return the product of the sizes of these axes, of one element."""
        sizes = self.some(axes)
        known = self._rw.known(sizes)
        if known is not None:
            return integers(self._rw, prod(known.tolist()))
        return (
            sizes
            if len(axes) == 1
            else self._rw.before("ReduceProd", [sizes], hint="size", axes=[0], keepdims=1)
        )

    def strides(self, count: int) -> str:
        """Return how far apart, counted in blocks of the axes from `count` on, neighbours are in each of the first axes."""
        parts = [self.product(range(axis + 1, count)) for axis in range(count)]
        known = [self._rw.known(part) for part in parts]
        if all(part is not None for part in known):
            return integers(self._rw, *(int(part[0]) for part in known if part is not None))
        return self._rw.before("Concat", parts, hint="strides", axis=0)

    def places(self, axis: int) -> str:
        """Return 0, 1, 2 … for the elements of an axis."""
        return iota(self._rw, self.some([axis]))
