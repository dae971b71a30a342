"""Declared shapes: what onnx's inference says of them when nothing but the inputs is believed."""

from __future__ import annotations

from collections.abc import Mapping, Set

import onnx

from onnx_migrate.analysis.onnx_inference import InferenceError, infer_shapes
from onnx_migrate.analysis.skeleton import skeleton
from onnx_migrate.errors import CannotMigrate
from onnx_migrate.model.graphs import nested_nodes, subgraphs
from onnx_migrate.spec.schema import is_onnx

__all__ = [
    "Dims",
    "dims_of",
    "dims_text",
    "drop_value_info",
    "inferred_outputs",
    "inferred_shapes",
    "set_dims",
]

Dims = tuple[int | str | None, ...]


def drop_value_info(graph: onnx.GraphProto) -> int:
    """Forget every shape noted between inputs and outputs, and all of sub-graphs; return how many there were."""
    count = len(graph.value_info)
    graph.ClearField("value_info")
    for node in nested_nodes(graph.node):
        for _, _, inner in subgraphs(node):
            count += len(inner.value_info)
            inner.ClearField("value_info")
            # ONNX Runtime asks for the shapes of a Loop's counter and condition, which no size of a model moves.
            fixed = node.op_type == "Loop" and is_onnx(node.domain)
            for value in (*inner.input[2 if fixed else 0 :], *inner.output[1 if fixed else 0 :]):
                # Nor does a scalar's shape hold a size.
                if value.type.WhichOneof("value") == "tensor_type" and value.type.tensor_type.shape.dim:
                    value.type.tensor_type.ClearField("shape")
                    count += 1
    return count


def inferred_outputs(
    proto: onnx.ModelProto, sizes: Mapping[str, int] | None = None
) -> dict[str, Dims | None]:
    """Return the outputs' dims as they follow from the inputs alone: a number, a symbol, or None for unknown.

    `sizes` gives inputs' symbols a number. None in place of the dims when not even the rank follows. Raises
    CannotMigrate, code `not-inferred`, with onnx's own words when its inference gives up on the model.
    """
    return {value.name: dims_of(value) for value in _inferred(proto, sizes).output}


def inferred_shapes(proto: onnx.ModelProto, names: Set[str]) -> dict[str, Dims | None]:
    """Return the dims of these values of the main graph in the same way."""
    graph = _inferred(proto, None)
    values = (*graph.value_info, *graph.input, *graph.output)
    return {value.name: dims_of(value) for value in values if value.name in names}


def _inferred(proto: onnx.ModelProto, sizes: Mapping[str, int] | None) -> onnx.GraphProto:
    copy = skeleton(proto)
    drop_value_info(copy.graph)
    for value in copy.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if sizes and dim.dim_param in sizes:
                dim.dim_value = sizes[dim.dim_param]
    for value in copy.graph.output:
        if value.type.WhichOneof("value") == "tensor_type":
            value.type.tensor_type.ClearField("shape")
    try:
        return infer_shapes(copy).graph
    except InferenceError as error:
        raise CannotMigrate(
            f"the shapes do not follow from the inputs: {error}", code="not-inferred"
        ) from error


def dims_of(value: onnx.ValueInfoProto) -> Dims | None:
    """Return a tensor's declared dims; None when there is no shape or it is no tensor."""
    if value.type.WhichOneof("value") != "tensor_type" or not value.type.tensor_type.HasField("shape"):
        return None
    found: list[int | str | None] = []
    for dim in value.type.tensor_type.shape.dim:
        if dim.HasField("dim_value"):
            found.append(dim.dim_value)
        else:
            # Inference makes up names of its own for what it does not know.
            known = dim.dim_param and not dim.dim_param.startswith("unk__")
            found.append(dim.dim_param if known else None)
    return tuple(found)


def set_dims(value: onnx.ValueInfoProto, dims: Dims) -> None:
    """Declare a tensor's dims; denotations of axes that stay are kept."""
    shape = value.type.tensor_type.shape
    shape.SetInParent()
    while len(shape.dim) > len(dims):
        del shape.dim[-1]
    while len(shape.dim) < len(dims):
        shape.dim.add()
    for dim, size in zip(shape.dim, dims, strict=True):
        if isinstance(size, int):
            dim.dim_value = size
        elif size:
            dim.dim_param = size
        else:
            dim.ClearField("value")


def dims_text(dims: Dims | None) -> str:
    """Return dims as people write them: [N, 3, ?]."""
    return "no shape" if dims is None else f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
