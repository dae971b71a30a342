"""Abstract values of what no node computes: graph inputs, initializers and the outputs of Constant nodes."""

from __future__ import annotations

from math import prod

import onnx

from onnx_migrate.analysis.scope import Scope
from onnx_migrate.analysis.shape_arithmetic import LARGEST
from onnx_migrate.model.weights import Weights

from .dims import Assignments, Dim
from .value import Value, known_value

__all__ = ["value_of_body_input", "value_of_constant", "value_of_input", "value_of_sparse", "value_of_tensor"]


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
