"""The transfer function of one node: onnx's shape inference, run once under each assignment, and what that leaves out.

It leaves out the elements of shape arithmetic, and the lengths of Resize and Expand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import defs

from onnx_migrate.facts.node_inference import infer_node_outputs
from onnx_migrate.facts.onnx_inference import InferenceError
from onnx_migrate.facts.shape_arithmetic import Array, attributes_of, compute
from onnx_migrate.standard.resize import run_length
from onnx_migrate.standard.schema import is_onnx

from .dims import Assignments, Dim, Dims
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
        _complete(node, inputs, outputs, assignments)
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


def _complete(
    node: onnx.NodeProto, inputs: Sequence[Value | None], outputs: list[Value], assignments: Assignments
) -> None:
    """Add to the outputs that were inferred of a node of ONNX: elements, and dims that onnx does not infer."""
    _resized(node, inputs, outputs, assignments)
    _expanded(node, inputs, outputs)
    if node.op_type == "Split":
        _split(node, inputs, outputs, assignments)
    elif len(outputs) == 1:
        outputs[0].data = _data(node, inputs, assignments)
    for output in outputs:
        if output.data is not None and output.dims is None:
            output.dims = _dims_of_data(output.data)


def _resized(
    node: onnx.NodeProto, inputs: Sequence[Value | None], outputs: list[Value], assignments: Assignments
) -> None:
    """Set the lengths that a Resize by scales has in ONNX Runtime, which onnx infers in another precision."""
    index = {"Resize": 2, "Upsample": 1}.get(node.op_type)
    if index is None or len(inputs) <= index or inputs[0] is None or inputs[0].dims is None:
        return
    scales, dims = inputs[index], inputs[0].dims
    if scales is None or scales.data is None or scales.data[0].shape != (len(dims),):
        return
    lengths: list[Dim | None] = []
    for axis, dim in enumerate(dims):
        if dim is None:
            lengths.append(None)
            continue
        sizes = tuple(
            run_length(dim.sizes[assignment], scales.data[assignment][axis])
            for assignment in range(assignments.count)
        )
        lengths.append(dim if sizes == dim.sizes else Dim(sizes))
    outputs[0].dims = tuple(lengths)


def _expanded(node: onnx.NodeProto, inputs: Sequence[Value | None], outputs: list[Value]) -> None:
    """Set the dims of an Expand to an unknown shape: an axis of the input that is longer than 1 keeps its length."""
    if node.op_type != "Expand" or len(inputs) < 2 or inputs[0] is None or inputs[1] is None:
        return
    dims, rank = inputs[0].dims, inputs[1].known
    if dims is None or not rank or rank[0].varies or inputs[1].data is not None:
        return
    new = rank[0].frozen - len(dims)
    if new >= 0:
        kept = [dim if dim is not None and (dim.varies or dim.frozen > 1) else None for dim in dims]
        outputs[0].dims = (*(None for _ in range(new)), *kept)


def _data(
    node: onnx.NodeProto, inputs: Sequence[Value | None], assignments: Assignments
) -> tuple[Array, ...] | None:
    """Return the elements of a node's one output under each assignment, None if they are not known."""
    attributes = attributes_of(node)
    if node.op_type in ("Shape", "Size"):
        dims = inputs[0].known if inputs and inputs[0] is not None else None
        if dims is None:
            return None
        cut = slice(attributes.get("start", 0), attributes.get("end"))
        shapes = [
            np.array([dim.sizes[assignment] for dim in dims], np.int64)
            for assignment in range(assignments.count)
        ]
        return tuple(
            shape[cut] if node.op_type == "Shape" else np.asarray(np.prod(shape)) for shape in shapes
        )
    if any(attribute.ref_attr_name for attribute in node.attribute) or not inputs:
        return None
    known = [value.data for value in inputs if value is not None and value.data is not None]
    if len(known) < len(inputs):
        return None
    if all(len({id(array) for array in data}) == 1 for data in known):
        alone = compute(node.op_type, attributes, [data[0] for data in known])
        return None if alone is None else (alone,) * assignments.count
    found = [
        compute(node.op_type, attributes, [data[assignment] for data in known])
        for assignment in range(assignments.count)
    ]
    arrays = tuple(array for array in found if array is not None)
    return arrays if len(arrays) == len(found) else None


def _split(
    node: onnx.NodeProto, inputs: Sequence[Value | None], outputs: list[Value], assignments: Assignments
) -> None:
    x = inputs[0] if inputs else None
    axis = attributes_of(node).get("axis", 0)
    lengths = [output.known for output in outputs]
    if x is None or x.data is None or None in lengths:
        return
    start = [0] * assignments.count
    for output, dims in zip(outputs, lengths, strict=True):
        sizes = dims[axis].sizes if dims else ()
        ends = [first + size for first, size in zip(start, sizes, strict=True)]
        output.data = tuple(
            np.take(array, range(start[assignment], ends[assignment]), axis)
            for assignment, array in enumerate(x.data)
        )
        start = ends


def _dims_of_data(data: tuple[Array, ...]) -> Dims | None:
    if len({array.ndim for array in data}) > 1:
        return None
    return tuple(Dim(tuple(array.shape[axis] for array in data)) for axis in range(data[0].ndim))
