"""Abstract values: the type, dims and, for shape arithmetic, the elements of a tensor under each assignment.

The functions return those of what no node computes: graph inputs, initializers and the outputs of Constant nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.shape_arithmetic import LARGEST, Array
from onnx_migrate.model.weights import Weights

from .dims import Assignments, Dim, Dims

__all__ = [
    "Array",
    "Value",
    "dtype_of",
    "join",
    "known_value",
    "value_of_body_input",
    "value_of_constant",
    "value_of_input",
    "value_of_sparse",
    "value_of_tensor",
]


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


def value_of_input(declared: onnx.ValueInfoProto, assignments: Assignments) -> Value:
    """Return the value of an input of the main graph, whose symbolic dims have the sizes assigned to the symbols.

    A dim with a symbol that has no sizes is unknown.
    """
    kind = declared.type
    if kind.WhichOneof("value") != "tensor_type":
        return Value(types=(kind,) * assignments.count)
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return Value(tensor.elem_type)
    dims: list[Dim | None] = []
    for dim in tensor.shape.dim:
        if dim.dim_param in assignments.sizes:
            dims.append(Dim(assignments.sizes[dim.dim_param]))
        else:
            dims.append(assignments.fixed(dim.dim_value) if dim.HasField("dim_value") else None)
    return Value(tensor.elem_type, tuple(dims))


def value_of_body_input(declared: onnx.ValueInfoProto) -> Value:
    """Return the value of an input of a sub-graph, whose declared dims are not trusted: they hold frozen sizes."""
    tensor = declared.type.tensor_type
    return Value(tensor.elem_type) if declared.type.WhichOneof("value") == "tensor_type" else Value()


def value_of_tensor(tensor: onnx.TensorProto, weights: Weights, assignments: Assignments) -> Value:
    """Return the value of an initializer; the elements are read if there are at most LARGEST of them."""
    dims = tuple(map(assignments.fixed, tensor.dims))
    if prod(tensor.dims) > LARGEST or tensor.data_type == onnx.TensorProto.STRING:
        return Value(tensor.data_type, dims)
    return Value(tensor.data_type, dims, (weights.array(tensor),) * assignments.count)


def value_of_sparse(tensor: onnx.SparseTensorProto, assignments: Assignments) -> Value:
    """Return the value of a sparse initializer, without its elements."""
    return Value(tensor.values.data_type, tuple(map(assignments.fixed, tensor.dims)))


def value_of_constant(
    node: onnx.NodeProto, scope: Scope, weights: Weights, assignments: Assignments
) -> Value:
    """Return the value of the output of a Constant node of ONNX; nothing is known of one that a call sets anew."""
    tensor = next((attribute for attribute in node.attribute if attribute.name == "value"), None)
    if tensor is not None and not tensor.ref_attr_name:
        return value_of_tensor(tensor.t, weights, assignments)
    array = scope.constant(node.output[0])
    return Value() if array is None else known_value(array, assignments)
