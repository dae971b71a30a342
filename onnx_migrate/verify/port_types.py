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

    Only tensors of numbers with the same names get Casts. The given model does not change.
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
    inputs = [value for value in graph.input if value.name in types]
    outputs = [value for value in graph.output if value.name in types]
    before = [
        helper.make_node("Cast", [value.name], [inner[value.name]], to=types[value.name]) for value in inputs
    ]
    behind = [
        helper.make_node("Cast", [inner[value.name]], [value.name], to=wanted[value.name])
        for value in outputs
    ]
    ports = [(value, value.name) for value in (*inputs, *outputs)]
    rename_values(graph, inner)
    for value, name in ports:  # the ports keep their names, and the nodes read and write the casts
        value.name, value.type.tensor_type.elem_type = name, wanted[name]
    nodes = [*before, *graph.node, *behind]
    del graph.node[:]
    graph.node.extend(nodes)
    return result


def _element_types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the element types of inputs and outputs that are tensors, by name."""
    return {
        value.name: value.type.tensor_type.elem_type
        for value in (*proto.graph.input, *proto.graph.output)
        if value.type.WhichOneof("value") == "tensor_type"
    }
