"""The transfer function of one node: onnx's shape inference, run once under each assignment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import onnx
from onnx import defs

from onnx_migrate.analysis.inference.node_outputs import infer_node_outputs
from onnx_migrate.analysis.onnx_inference import InferenceError
from onnx_migrate.spec.schema import is_onnx

from .data_propagation import complete_outputs
from .dims import Assignments, Dim
from .value import Value

__all__ = ["ShapeConflict", "infer"]


class ShapeConflict(Exception):
    """A node is valid at the sizes of the source model and not at others; the message is onnx's, on one line."""


def infer(
    node: onnx.NodeProto,
    inputs: Sequence[Value | None],
    imports: Mapping[str, int],
    ir_version: int,
    assignments: Assignments,
) -> list[Value]:
    """Return the values of a node's outputs; `Value()` for those of an operator that onnx has no schema of.

    `inputs` has None for an input that is left out, `imports` the opset version of each domain. Raises ShapeConflict
    if inference fails at other sizes only; where it fails at the frozen sizes too, nothing is known of the outputs.
    """
    domain = "" if is_onnx(node.domain) else node.domain
    operator = node.op_type if domain else _INFERRED_AS.get(node.op_type, node.op_type)
    schema = _schema(domain, operator, _version(domain, imports))
    inferred = node
    if operator != node.op_type:  # which has no attributes that matter
        inferred = onnx.NodeProto(op_type=operator, input=node.input, output=node.output)
    unknown = [Value() for _ in node.output]
    if schema is None or any(
        value is not None and not value.dtype and value.types is None for value in inputs
    ):
        return unknown
    invariant = not any(
        value is not None and (value.varies or value.types or _data_varies(value)) for value in inputs
    )
    try:
        found = [_infer(schema, inferred, inputs, imports, ir_version, 0)]
    except InferenceError:
        return unknown  # not because of the sizes
    try:
        others = range(1, assignments.count if not invariant else 1)
        found += [_infer(schema, inferred, inputs, imports, ir_version, assignment) for assignment in others]
    except InferenceError as error:
        raise ShapeConflict(" ".join(str(error).removeprefix("[ShapeInferenceError]").split())) from error
    found = found * assignments.count if invariant else found
    outputs = [_value_of(name, found, inputs) for name in node.output]
    if is_onnx(node.domain):
        complete_outputs(node, inputs, outputs, assignments)
    return outputs


_INFERRED_AS = {
    "LessOrEqual": "Less",
    "GreaterOrEqual": "Greater",
    "GroupNormalization": "InstanceNormalization",
    "MeanVarianceNormalization": "Identity",
}
"""Operators whose outputs onnx does not infer for a single node, in some versions, and others of the same inference."""


def _infer(
    schema: Any,
    node: onnx.NodeProto,
    inputs: Sequence[Value | None],
    imports: Mapping[str, int],
    ir_version: int,
    assignment: int,
) -> dict[str, onnx.TypeProto]:
    """Return the type of each output that onnx infers under one assignment."""
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for name, value in zip(node.input, inputs, strict=True):
        if value is not None:
            types[name] = value.type_in(assignment)
            tensor = value.tensor_in(assignment)
            if tensor is not None:
                data[name] = tensor
    return infer_node_outputs(schema, node, types, data, imports, ir_version)


@cache
def _schema(domain: str, operator: str, version: int) -> Any:
    try:
        return defs.get_schema(operator, version, domain)
    except defs.SchemaError:
        return None


def _version(domain: str, imports: Mapping[str, int]) -> int:
    if is_onnx(domain):
        return imports.get("", imports.get("ai.onnx", 1))
    return imports.get(domain, 1)


def _data_varies(value: Value) -> bool:
    return value.data is not None and value.constant() is None


def _value_of(name: str, found: list[dict[str, onnx.TypeProto]], inputs: Sequence[Value | None]) -> Value:
    """Return the value of one output from its type under each assignment.

    A dim that has the sizes of a merged axis of an input keeps the factors of that axis.
    """
    if not name or any(name not in types for types in found):
        return Value()
    types = [each[name] for each in found]
    if types[0].WhichOneof("value") != "tensor_type":
        return Value(types=tuple(types))
    dtype = types[0].tensor_type.elem_type
    shapes = [each.tensor_type.shape for each in types]
    ranks = {len(shape.dim) for shape in shapes}
    if any(not each.tensor_type.HasField("shape") for each in types) or len(ranks) > 1:
        return Value(dtype)
    merged = {
        dim.sizes: dim
        for value in inputs
        if value is not None
        for dim in value.dims or ()
        if dim is not None and dim.factors
    }
    dims: list[Dim | None] = []
    for axis in range(ranks.pop()):
        each = [shape.dim[axis] for shape in shapes]
        sizes = tuple(dim.dim_value for dim in each)
        dims.append(merged.get(sizes, Dim(sizes)) if all(dim.HasField("dim_value") for dim in each) else None)
    return Value(dtype, tuple(dims))
