"""The transfer function of one node: onnx's shape inference, run once under each assignment, and additions to it.

The additions are the elements of shape arithmetic, and the lengths of Resize and Expand.
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

from .values import SAMPLES, Dim, Dims, SampledValue, joined_axis

__all__ = ["ShapeConflict", "infer"]


class ShapeConflict(Exception):
    """A node is valid at the sizes of the source model and not at others; the message is onnx's, on one line."""


def infer(
    node: onnx.NodeProto, inputs: Sequence[SampledValue | None], imports: Mapping[str, int], ir_version: int
) -> list[SampledValue]:
    """Return the values of a node's outputs; for an operator without a schema in onnx, `SampledValue()`.

    `inputs` has None for an absent input, `imports` the opset version of each domain. Raises ShapeConflict
    if inference fails only at other sizes. If it fails at the frozen sizes too, the outputs are unknown.
    """
    domain = "" if is_onnx(node.domain) else node.domain
    operator = node.op_type if domain else _INFERRED_AS.get(node.op_type, node.op_type)
    version = imports.get(domain, 1 if domain else imports.get("ai.onnx", 1))
    schema = _schema(domain, operator, version)
    inferred = node
    if operator != node.op_type:  # the operator used for inference has no attributes that matter
        inferred = onnx.NodeProto(op_type=operator, input=node.input, output=node.output)
    present_inputs = [value for value in inputs if value is not None]
    if schema is None or any(not value.dtype and value.types is None for value in present_inputs):
        return [SampledValue() for _ in node.output]
    data_varies = (value.data is not None and value.constant() is None for value in present_inputs)
    varies = any(value.varies or value.types for value in present_inputs) or any(data_varies)

    def types_at(assignment: int) -> dict[str, onnx.TypeProto]:
        named = [(name, value) for name, value in zip(node.input, inputs, strict=True) if value is not None]
        types = {name: value.type_in(assignment) for name, value in named}
        tensors = {name: value.tensor_in(assignment) for name, value in named}
        data = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        return infer_node_outputs(schema, inferred, types, data, imports, ir_version)

    try:
        sampled_types = [types_at(0)]
    except InferenceError:
        return [SampledValue() for _ in node.output]  # not because of the sizes
    try:
        sampled_types = (
            [*sampled_types, *map(types_at, range(1, SAMPLES))] if varies else sampled_types * SAMPLES
        )
    except InferenceError as error:
        raise ShapeConflict(" ".join(str(error).removeprefix("[ShapeInferenceError]").split())) from error
    outputs = [_value_of(name, sampled_types, present_inputs) for name in node.output]
    if is_onnx(node.domain):
        _complete(node, inputs, outputs)
    return outputs


_INFERRED_AS = {
    "LessOrEqual": "Less",
    "GreaterOrEqual": "Greater",
    "GroupNormalization": "InstanceNormalization",
    "MeanVarianceNormalization": "Identity",
}
"""Operators whose outputs onnx does not infer for a single node, in some versions, and others of the same inference."""


@cache
def _schema(domain: str, operator: str, version: int) -> Any:
    # Each attempt of the search asks for the schema of every node again, so the answers stay in a cache.
    try:
        return defs.get_schema(operator, version, domain)
    except defs.SchemaError:
        return None


def _value_of(
    name: str, found: list[dict[str, onnx.TypeProto]], inputs: Sequence[SampledValue]
) -> SampledValue:
    """Return the value of one output from its type under each assignment.

    A dim that has the sizes of a merged or joined axis of an input keeps the factors or terms of that axis.
    """
    if not name or any(name not in types for types in found):
        return SampledValue()
    types = [each[name] for each in found]
    if types[0].WhichOneof("value") != "tensor_type":
        return SampledValue(types=tuple(types))
    dtype = types[0].tensor_type.elem_type
    shapes = [each.tensor_type.shape for each in types]
    ranks = {len(shape.dim) for shape in shapes}
    if any(not each.tensor_type.HasField("shape") for each in types) or len(ranks) > 1:
        return SampledValue(dtype)
    axes = [dim for value in inputs for dim in value.dims or () if dim is not None and dim.varies]
    parts = [part for dim in axes for part in (*dim.flat_terms(), dim)]
    merged = {dim.sizes: dim for dim in parts if dim.factors or dim.terms}
    dims: list[Dim | None] = []
    for axis in range(ranks.pop()):
        each = [shape.dim[axis] for shape in shapes]
        sizes = tuple(dim.dim_value for dim in each)
        dims.append(merged.get(sizes, Dim(sizes)) if all(dim.HasField("dim_value") for dim in each) else None)
    return SampledValue(dtype, tuple(dims))


def _complete(
    node: onnx.NodeProto, inputs: Sequence[SampledValue | None], outputs: list[SampledValue]
) -> None:
    """Add to the outputs that were inferred of a node of ONNX: elements, and dims that onnx does not infer."""
    x = inputs[0] if inputs else None
    if x is not None and x.dims is not None:
        index = {"Resize": 2, "Upsample": 1, "Expand": 1}.get(node.op_type, len(inputs))
        second = inputs[index] if index < len(inputs) else None
        complete = _expanded if node.op_type == "Expand" else _resized
        outputs[0].dims = (complete(x.dims, second) if second is not None else None) or outputs[0].dims
    if node.op_type == "Concat":
        outputs[0].dims = _joined(node, inputs, outputs[0].dims)
    if node.op_type == "Split":
        _split(node, x, outputs)
    elif len(outputs) == 1:
        outputs[0].data = _data(node, inputs)
    for output in outputs:
        if (
            output.data is not None
            and output.dims is None
            and len({array.ndim for array in output.data}) == 1
        ):
            output.dims = tuple(map(Dim, zip(*(array.shape for array in output.data), strict=True)))


def _resized(dims: Dims, scales: SampledValue) -> Dims | None:
    """Return the lengths that a Resize by scales has in ONNX Runtime, which onnx infers in another precision."""
    if scales.data is None or scales.data[0].shape != (len(dims),):
        return None
    lengths: list[Dim | None] = []
    for axis, dim in enumerate(dims):
        run = dim and Dim(tuple(map(run_length, dim.sizes, (each[axis] for each in scales.data))))
        lengths.append(dim if run == dim else run)
    return tuple(lengths)


def _joined(node: onnx.NodeProto, inputs: Sequence[SampledValue | None], dims: Dims | None) -> Dims | None:
    """Return the dims of a Concat's output, whose joined axis gets the axes of the inputs as its terms."""
    if not dims:
        return dims
    axis = attributes_of(node).get("axis", 1) % len(dims)
    terms = [value.dims[axis] if value is not None and value.dims else None for value in inputs]
    known_terms = [term for term in terms if term is not None]
    if len(known_terms) < len(terms) or not any(term.varies for term in known_terms):
        return dims
    return (*dims[:axis], joined_axis(known_terms), *dims[axis + 1 :])


def _expanded(dims: Dims, shape: SampledValue) -> Dims | None:
    """Return the dims of an Expand to an unknown shape: an axis of the input that is longer than 1 keeps its length."""
    rank = shape.known
    if not rank or rank[0].varies or shape.data is not None or rank[0].frozen < len(dims):
        return None
    kept_dims = [dim if dim is not None and (dim.varies or dim.frozen > 1) else None for dim in dims]
    return (*(None for _ in range(rank[0].frozen - len(dims))), *kept_dims)


def _data(node: onnx.NodeProto, inputs: Sequence[SampledValue | None]) -> tuple[Array, ...] | None:
    """Return the elements of a node's one output under each assignment, None if they are not known."""
    attributes = attributes_of(node)
    if node.op_type in ("Shape", "Size"):
        dims = inputs[0].known if inputs and inputs[0] is not None else None
        if dims is None:
            return None
        cut = slice(attributes.get("start", 0), attributes.get("end"))
        shapes = [
            np.array([dim.sizes[assignment] for dim in dims], np.int64) for assignment in range(SAMPLES)
        ]
        return tuple(
            shape[cut] if node.op_type == "Shape" else np.asarray(np.prod(shape)) for shape in shapes
        )
    # Only a call of the function gives such an attribute its value.
    if any(attribute.ref_attr_name for attribute in node.attribute) or not inputs:
        return None
    known_data = [value.data for value in inputs if value is not None and value.data is not None]
    if len(known_data) < len(inputs):
        return None
    # A constant has one array for all assignments, so one computation serves them all.
    if all(len({id(array) for array in data}) == 1 for data in known_data):
        alone = compute(node.op_type, attributes, [data[0] for data in known_data])
        return None if alone is None else (alone,) * SAMPLES
    computed_data = [compute(node.op_type, attributes, list(data)) for data in zip(*known_data, strict=True)]
    arrays = tuple(array for array in computed_data if array is not None)
    return arrays if len(arrays) == len(computed_data) else None


def _split(node: onnx.NodeProto, x: SampledValue | None, outputs: list[SampledValue]) -> None:
    axis = attributes_of(node).get("axis", 0)
    lengths = [output.known for output in outputs]
    if x is None or x.data is None or None in lengths:
        return
    start = [0] * SAMPLES
    for output, dims in zip(outputs, lengths, strict=True):
        sizes = dims[axis].sizes if dims else ()
        ends = [first + size for first, size in zip(start, sizes, strict=True)]
        output.data = tuple(
            np.take(array, range(first, end), axis)
            for array, first, end in zip(x.data, start, ends, strict=True)
        )
        start = ends
