"""onnx's inference of one node, in every world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, defs, helper, shape_inference

from onnx_migrate.analysis.shape_arithmetic import compute
from onnx_migrate.spec.resize import run_length
from onnx_migrate.spec.schema import is_onnx

from .domain import Array, Assignments, Dim, Dims, Value

__all__ = ["ShapeConflict", "attributes_of", "infer"]

_ERRORS = (shape_inference.InferenceError, RuntimeError, ValueError)


class ShapeConflict(Exception):
    """A node that is valid at the frozen sizes and not at others; the message says why, on one line."""


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return a node's attributes but for graphs and those that each call of a function sets anew."""
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    return {
        attribute.name: helper.get_attribute_value(attribute)
        for attribute in node.attribute
        if not attribute.ref_attr_name and attribute.type not in graphs
    }


def infer(
    node: onnx.NodeProto,
    given: Sequence[Value | None],
    imports: Mapping[str, int],
    ir_version: int,
    assignments: Assignments,
) -> list[Value]:
    """Return the node's outputs. Raises DisagreementError.

    None among `given` stands for an input that is left out. Nothing is known of what onnx has no schema of.
    """
    schema = _schema(
        "" if is_onnx(node.domain) else node.domain, node.op_type, _version(node.domain, imports)
    )
    unknown = [Value() for _ in node.output]
    if schema is None or any(
        value is not None and not value.dtype and value.types is None for value in given
    ):
        return unknown
    invariant = not any(
        value is not None and (value.varies or value.types or _data_varies(value)) for value in given
    )
    try:
        found = [_infer(schema, node, given, imports, ir_version, 0)]
    except _ERRORS:
        return unknown  # not because of the sizes
    try:
        others = range(1, assignments.count if not invariant else 1)
        found += [_infer(schema, node, given, imports, ir_version, assignment) for assignment in others]
    except _ERRORS as error:
        raise ShapeConflict(" ".join(str(error).split())) from error
    found = found * assignments.count if invariant else found
    outputs = [_value_of(name, found, given) for name in node.output]
    if is_onnx(node.domain):
        _resized(node, given, outputs, assignments)
        _expanded(node, given, outputs)
        if node.op_type == "Split":
            _split(node, given, outputs, assignments)
        elif len(outputs) == 1:
            outputs[0].data = _data(node, given, assignments)
        for output in outputs:
            if output.data is not None and output.dims is None:
                output.dims = _dims_of_data(output.data)
    return outputs


_LOOKS_UP_ALL = tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 18)
"""Whether the installed onnx looks up the types of inputs that are left out too."""


def _infer(
    schema: Any,
    node: onnx.NodeProto,
    given: Sequence[Value | None],
    imports: Mapping[str, int],
    ir_version: int,
    assignment: int,
) -> dict[str, onnx.TypeProto]:
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for name, value in zip(node.input, given, strict=True):
        if value is not None:
            types[name] = value.type_in(assignment)
            tensor = value.tensor_in(assignment)
            if tensor is not None:
                data[name] = tensor
    if "" in node.input and _LOOKS_UP_ALL:
        # What shape_inference.infer_node_outputs does, but for asking the type of an input that is left out.
        inferred = schema._infer_node_outputs(
            node.SerializeToString(),
            {name: type_.SerializeToString() for name, type_ in types.items()},
            {name: tensor.SerializeToString() for name, tensor in data.items()},
            {},
            dict(imports),
            ir_version,
        )
        return {name: onnx.TypeProto.FromString(type_) for name, type_ in inferred.items()}
    opsets = [helper.make_opsetid(domain, version) for domain, version in imports.items()]
    found: dict[str, onnx.TypeProto] = shape_inference.infer_node_outputs(
        schema, node, types, data, opset_imports=opsets, ir_version=ir_version
    )
    return found


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


def _value_of(name: str, found: list[dict[str, onnx.TypeProto]], given: Sequence[Value | None]) -> Value:
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
    made = {
        dim.sizes: dim
        for value in given
        if value is not None
        for dim in value.dims or ()
        if dim is not None and dim.factors
    }
    dims: list[Dim | None] = []
    for axis in range(ranks.pop()):
        at = [shape.dim[axis] for shape in shapes]
        sizes = tuple(dim.dim_value for dim in at)
        dims.append(made.get(sizes, Dim(sizes)) if all(dim.HasField("dim_value") for dim in at) else None)
    return Value(dtype, tuple(dims))


def _resized(
    node: onnx.NodeProto, given: Sequence[Value | None], outputs: list[Value], assignments: Assignments
) -> None:
    """Set the lengths that a Resize by scales has in ONNX Runtime, which onnx infers in another precision."""
    index = {"Resize": 2, "Upsample": 1}.get(node.op_type)
    if index is None or len(given) <= index or given[0] is None or given[0].dims is None:
        return
    scales, dims = given[index], given[0].dims
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


def _expanded(node: onnx.NodeProto, given: Sequence[Value | None], outputs: list[Value]) -> None:
    """Give an Expand to lengths that are not known the axes of its input that are longer than 1 and so stay."""
    if node.op_type != "Expand" or len(given) < 2 or given[0] is None or given[1] is None:
        return
    dims, rank = given[0].dims, given[1].known
    if dims is None or not rank or rank[0].varies or given[1].data is not None:
        return
    new = rank[0].frozen - len(dims)
    if new >= 0:
        stays = [dim if dim is not None and (dim.varies or dim.frozen > 1) else None for dim in dims]
        outputs[0].dims = (*(None for _ in range(new)), *stays)


def _data(
    node: onnx.NodeProto, given: Sequence[Value | None], assignments: Assignments
) -> tuple[Array, ...] | None:
    attributes = attributes_of(node)
    if node.op_type in ("Shape", "Size"):
        dims = given[0].known if given and given[0] is not None else None
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
    if any(attribute.ref_attr_name for attribute in node.attribute) or not given:
        return None
    parts = [value.data for value in given if value is not None]
    if None in parts or (None in given and node.op_type != "Slice"):
        return None
    if any(value is None for value in given):
        return None
    known = [part for part in parts if part is not None]
    if all(len({id(array) for array in part}) == 1 for part in known):
        alone = compute(node.op_type, attributes, [part[0] for part in known])
        return None if alone is None else (alone,) * assignments.count
    found = [
        compute(node.op_type, attributes, [part[assignment] for part in known])
        for assignment in range(assignments.count)
    ]
    return (
        tuple(array for array in found if array is not None)
        if all(array is not None for array in found)
        else None
    )


def _split(
    node: onnx.NodeProto, given: Sequence[Value | None], outputs: list[Value], assignments: Assignments
) -> None:
    x = given[0] if given else None
    axis = attributes_of(node).get("axis", 0)
    lengths = [output.known for output in outputs]
    if x is None or x.data is None or None in lengths:
        return
    start = [0] * assignments.count
    for output, dims in zip(outputs, lengths, strict=True):
        sizes = dims[axis].sizes if dims else ()
        ends = [at + size for at, size in zip(start, sizes, strict=True)]
        output.data = tuple(
            np.take(array, range(start[assignment], ends[assignment]), axis)
            for assignment, array in enumerate(x.data)
        )
        start = ends


def _dims_of_data(data: tuple[Array, ...]) -> Dims | None:
    if len({array.ndim for array in data}) > 1:
        return None
    return tuple(Dim(tuple(array.shape[axis] for array in data)) for axis in range(data[0].ndim))
