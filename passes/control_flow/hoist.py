"""Constants of sub-graphs become constants of the main graph, so that rounds share them."""

from __future__ import annotations

import onnx
from onnx import AttributeProto

from onnx_migrate.facts.scope import Scope
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.model.graphs import subgraphs
from onnx_migrate.standard.schema import is_onnx

__all__ = ["hoist_constants"]


def hoist_constants(node: onnx.NodeProto, scope: Scope) -> None:
    """Move the initializers, and the tensors of Constants, of all sub-graphs of a node to the body that it is in, in place."""
    for _, _, graph in subgraphs(node):
        _hoist(graph, scope, {})


def _hoist(graph: onnx.GraphProto, scope: Scope, outer: dict[str, str]) -> None:
    own = {value.name for value in graph.input} | {name for node in graph.node for name in node.output}
    # Names of the graph itself hide outer ones.
    renamed = {name: new for name, new in outer.items() if name not in own}
    for tensor in graph.initializer:
        renamed[tensor.name] = _moved(tensor, tensor.name, scope)
    graph.ClearField("initializer")
    # Constants move out, and all other nodes stay.
    remaining_nodes = []
    for node in graph.node:
        value = _tensor_of(node)
        if value is not None:
            renamed[node.output[0]] = _moved(value, node.output[0], scope)
            continue
        remaining_nodes.append(node)
        for index, name in enumerate(node.input):
            node.input[index] = renamed.get(name, name)
        for _, _, inner in subgraphs(node):
            _hoist(inner, scope, renamed)
    if len(remaining_nodes) < len(graph.node):
        del graph.node[:]
        graph.node.extend(remaining_nodes)
    for output in graph.output:
        output.name = renamed.get(output.name, output.name)


def _tensor_of(node: onnx.NodeProto) -> onnx.TensorProto | None:
    if node.op_type != "Constant" or not is_onnx(node.domain) or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    return attribute.t if attribute.name == "value" and attribute.type == AttributeProto.TENSOR else None


def _moved(tensor: onnx.TensorProto, name: str, scope: Scope) -> str:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = scope.names.fresh(name)
    scope.add_tensor(copy)
    scope.record_type(copy.name, ValueType(copy.data_type, tuple(copy.dims)))
    return copy.name
