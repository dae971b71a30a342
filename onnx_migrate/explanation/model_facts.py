"""The facts of a model that advice depends on: the floating-point types it computes in, and its inputs' dynamic dims."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

import onnx
from onnx import TensorProto

from onnx_migrate.inspection import load_structure, located_nodes
from onnx_migrate.model.graphs import fed_inputs, weight_tensors

__all__ = ["model_facts"]

_IMAGE, _SEQUENCE = 320, 128
"""Elements along an axis of an image, and along any other axis but the first, in examples of `--fix-shape`."""

_FLOATS = frozenset((TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE))


def model_facts(model: str) -> dict[str, str]:
    """Return the facts of a model by its path, quoted for a shell; none for "" and for a path where no file is.

    Raises LoadError if the file is not a readable model.
    """
    path = shlex.split(model)[0] if model else ""
    if not os.path.isfile(path):
        return {}
    proto = load_structure(path)[0].proto
    return {**_type_facts(_float_types(proto)), **_dim_facts(proto.graph)}


def _type_facts(types: set[int]) -> dict[str, str]:
    if types == {TensorProto.FLOAT}:
        return {"only_float32": "yes"}
    others = sorted(TensorProto.DataType.Name(dtype).lower() for dtype in types - {TensorProto.FLOAT})
    return {"other_floats": " and ".join(others)} if others else {}


def _dim_facts(graph: onnx.GraphProto) -> dict[str, str]:
    """Return the options that give each open dim of the inputs a number; `fixed` if no dim is open."""
    named_dims: dict[str, int] = {}
    whole_inputs: list[str] = []
    for value in fed_inputs(graph):
        dims = value.type.tensor_type.shape.dim
        sizes = [dim.dim_value or _guess(axis, len(dims)) for axis, dim in enumerate(dims)]
        # A dim without a name can only be fixed with all others of its input.
        if any(not dim.HasField("dim_value") and not dim.dim_param for dim in dims):
            whole_inputs.append(shlex.quote(f"{value.name}:{','.join(map(str, sizes))}"))
        else:
            named_dims |= {
                dim.dim_param: size for dim, size in zip(dims, sizes, strict=True) if dim.dim_param
            }
    options = [*(shlex.quote(f"{name}={size}") for name, size in named_dims.items()), *whole_inputs]
    return (
        {"open_dims": " ".join(f"--fix-shape {option}" for option in options)}
        if options
        else {"fixed": "yes"}
    )


def _guess(axis: int, rank: int) -> int:
    """Return a usual length for an axis: one item, and for images a multiple of the strides that networks have."""
    if axis == 0:
        return 1
    return _IMAGE if rank == 4 and axis > 1 else _SEQUENCE


def _float_types(proto: onnx.ModelProto) -> set[int]:
    return {dtype for dtype in _types(proto) if dtype in _FLOATS}


def _types(proto: onnx.ModelProto) -> Iterator[int]:
    """Yield the element types that the model declares, stores, casts to and has in constants."""
    graph = proto.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.type.tensor_type.elem_type
    for tensor in weight_tensors(proto):
        yield tensor.data_type
    for located in located_nodes(proto):
        for attribute in located.node.attribute:
            if located.node.op_type == "Cast" and attribute.name == "to":
                yield attribute.i
            elif attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t.data_type
