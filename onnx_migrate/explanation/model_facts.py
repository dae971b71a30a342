"""What advice needs to know of the model: which floating-point types it computes in, and whether it is quantised."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator

import onnx
from onnx import TensorProto

from onnx_migrate.inspection import load_structure, located_nodes
from onnx_migrate.model.graphs import weight_tensors

__all__ = ["model_facts"]

_FLOATS = frozenset((TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE))


def model_facts(model: str) -> dict[str, str]:
    """Return the facts of a model by its path, quoted for a shell; none for "" and for a path where no file is.

    Raises LoadError if the file is not a readable model.
    """
    path = shlex.split(model)[0] if model else ""
    if not os.path.isfile(path):
        return {}
    types = _float_types(load_structure(path)[0].proto)
    if types == {TensorProto.FLOAT}:
        return {"only_float32": "yes"}
    others = sorted(TensorProto.DataType.Name(dtype).lower() for dtype in types - {TensorProto.FLOAT})
    return {"other_floats": " and ".join(others)} if others else {}


def _float_types(proto: onnx.ModelProto) -> set[int]:
    return _FLOATS & set(_types(proto))


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
