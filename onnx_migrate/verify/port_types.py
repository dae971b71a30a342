"""A model with the element types of another at its inputs and outputs, so that both run on the same inputs."""

from __future__ import annotations

import onnx
from onnx import helper

from onnx_migrate.model.model import Model
from onnx_migrate.model.names import Names
from onnx_migrate.verify.equivalence.counterparts import rename_values

__all__ = ["with_types_of"]


def with_types_of(model: Model, other: onnx.ModelProto) -> Model:
    """Return a model whose inputs and outputs have the element types of those of `other`, by Casts; itself if it has them.

    Only tensors of numbers with the same names get Casts. The model stays as it is.
    """
    wanted = _element_types(other)
    types = {
        name: kind for name, kind in _element_types(model.proto).items() if wanted.get(name, kind) != kind
    }
    if not types:
        return model
    result = model.copy()
    graph, names = result.proto.graph, Names(result.proto)
    inner = {name: names.fresh(f"{name}_cast") for name in types}
    ports = {name: value for name in types for value in (*graph.input, *graph.output) if value.name == name}
    inputs = {value.name for value in graph.input} & types.keys()
    rename_values(graph, inner)
    casts = [
        helper.make_node("Cast", [name], [inner[name]], to=types[name])
        if name in inputs
        else helper.make_node("Cast", [inner[name]], [name], to=wanted[name])
        for name in types
    ]
    for name, value in ports.items():
        value.name, value.type.tensor_type.elem_type = name, wanted[name]
    nodes = list(graph.node)
    del graph.node[:]
    before, behind = [cast for cast in casts if cast.input[0] in inputs], casts
    graph.node.extend([*before, *nodes, *(cast for cast in behind if cast.input[0] not in inputs)])
    return result


def _element_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the element types of inputs and outputs that are tensors, by name."""
    return {
        value.name: value.type.tensor_type.elem_type
        for value in (*proto.graph.input, *proto.graph.output)
        if value.type.WhichOneof("value") == "tensor_type"
    }
