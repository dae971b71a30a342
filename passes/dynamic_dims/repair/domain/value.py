"""One abstract value: the type, dims and, for shape arithmetic, the elements of a tensor under each assignment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .dims import Assignments, Dim, Dims

__all__ = ["Array", "Value", "dtype_of", "join", "known_value"]

Array = np.ndarray[Any, Any]


@dataclass
class Value:
    """What is known of a value; `Value()` is a value of which nothing is known, the top of the lattice.

    `dtype` is a TensorProto.DataType (0 if unknown), `dims` its axes (None if even the rank is unknown), `data` the
    elements under each assignment if they are few and known. `types` holds one TypeProto for each assignment of
    what is no tensor.
    """

    dtype: int = 0
    dims: Dims | None = None
    data: tuple[Array, ...] | None = None
    types: tuple[onnx.TypeProto, ...] | None = None
    _tensors: dict[int, TensorProto] = field(default_factory=dict, repr=False)

    @property
    def known(self) -> tuple[Dim, ...] | None:
        """The dims if the length of every axis is known, else None."""
        dims = [dim for dim in self.dims or () if dim is not None]
        return tuple(dims) if self.dims is not None and len(dims) == len(self.dims) else None

    @property
    def varies(self) -> bool:
        """Whether the length of any axis is known to vary with the assignment."""
        return self.dims is not None and any(dim is not None and dim.varies for dim in self.dims)

    def type_in(self, assignment: int) -> onnx.TypeProto:
        """Return the type, with the dims as numbers, under one assignment."""
        if self.types is not None:
            return self.types[assignment]
        sizes = (
            None
            if self.dims is None
            else [None if dim is None else dim.sizes[assignment] for dim in self.dims]
        )
        return helper.make_tensor_type_proto(self.dtype, sizes)

    def tensor_in(self, assignment: int) -> TensorProto | None:
        """Return the elements under one assignment as a TensorProto, None if they are not known."""
        if self.data is None:
            return None
        if assignment not in self._tensors:
            self._tensors[assignment] = numpy_helper.from_array(self.data[assignment])
        return self._tensors[assignment]

    def constant(self) -> Array | None:
        """Return the elements if they are known and equal under all assignments, else None."""
        if self.data is None or any(not np.array_equal(self.data[0], other) for other in self.data[1:]):
            return None
        return self.data[0]


def dtype_of(array: Array) -> int:
    """Return the TensorProto.DataType of an array's elements."""
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


def known_value(array: Array, assignments: Assignments) -> Value:
    """Return the value of a constant whose elements are known."""
    return Value(dtype_of(array), tuple(map(assignments.fixed, array.shape)), (array,) * assignments.count)


def join(a: Value, b: Value) -> Value:
    """Return the least upper bound: what is known of a value that is either `a` or `b`, as after an If."""
    if a.dims is None or b.dims is None or len(a.dims) != len(b.dims):
        return Value(a.dtype or b.dtype)
    return Value(a.dtype, tuple(x if x == y else None for x, y in zip(a.dims, b.dims, strict=True)))
