"""Initializers as IR version 3 wants them: each is an input of the main graph too, and sub-graphs have none."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ModelProto, NodeProto

from onnx_migrate.model.graphs import nested_bodies, subgraphs
from onnx_migrate.model.interface import list_initializers
from onnx_migrate.model.names import Names

__all__ = ["list_all_initializers"]


def list_all_initializers(proto: ModelProto) -> tuple[int, int]:
    """List all initializers as inputs after the real ones, in place; return how many were added, and moved.

    Initializers of sub-graphs move to the main graph under new names. A sub-graph of an If has no inputs, and onnx.checker
    and ONNX Runtime refuse such initializers below IR version 4. The model has no local functions and no sparse initializers.
    """
    moved = _move(proto)
    return list_initializers(proto.graph), moved


def _move(proto: ModelProto) -> int:
    """Move the initializers of sub-graphs that are no inputs of these to the main graph."""
    names, moved = Names(proto), 0
    for key, body in nested_bodies(proto.graph):
        if not key or not isinstance(body, GraphProto):
            continue
        # An initializer that is an input is a default, which stays.
        inputs = {value.name for value in body.input}
        renamed: dict[str, str] = {}
        for tensor in body.initializer:
            if tensor.name not in inputs:
                renamed[tensor.name] = names.fresh(tensor.name)
                copy = proto.graph.initializer.add()
                copy.CopyFrom(tensor)
                copy.name = renamed[tensor.name]
        if not renamed:
            continue
        moved += len(renamed)
        body_inputs = [tensor for tensor in body.initializer if tensor.name in inputs]
        del body.initializer[:]
        body.initializer.extend(body_inputs)
        returned = [value.name for value in body.output if value.name in renamed]
        _rename_reads(body, renamed)
        # A sub-graph must produce what it returns: a name of the graph around it is refused by ONNX Runtime.
        for name in dict.fromkeys(returned):
            body.node.append(NodeProto(op_type="Identity", input=[renamed[name]], output=[name]))
        declared = [value for value in body.value_info if value.name not in renamed]
        del body.value_info[:]
        body.value_info.extend(declared)
    return moved


def _rename_reads(graph: GraphProto, renamed: Mapping[str, str]) -> None:
    """Rename what the nodes of a graph read, also in sub-graphs that do not define the name themselves."""
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name in renamed:
                node.input[index] = renamed[name]
        for _, _, inner in subgraphs(node):
            own = {value.name for value in inner.input} | {tensor.name for tensor in inner.initializer}
            own.update(name for each in inner.node for name in each.output)
            visible = {name: new for name, new in renamed.items() if name not in own}
            # A body must define its outputs itself.
            returned = [value.name for value in inner.output if value.name in visible]
            _rename_reads(inner, visible)
            for name in dict.fromkeys(returned):
                inner.node.append(NodeProto(op_type="Identity", input=[visible[name]], output=[name]))
