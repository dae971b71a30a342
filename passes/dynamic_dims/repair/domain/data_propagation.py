"""What onnx's shape inference leaves out: the elements of shape arithmetic and the lengths of Resize and Expand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from onnx_migrate.analysis.shape_arithmetic import compute
from onnx_migrate.spec.resize import run_length

from .attributes import attributes_of
from .dims import Assignments, Dim, Dims
from .value import Array, Value

__all__ = ["complete_outputs"]


def complete_outputs(
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
