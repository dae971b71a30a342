"""The guarded bridge to functions of a whole ModelProto or of an onnx-graphsurgeon Graph.

graphsurgeon drops much of what a model may hold. The bridge refuses what it cannot hold, puts back what it
drops, and leaves the rest to the pipeline's own check of interface and legality.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
from onnx import AttributeProto

from onnx_migrate.errors import PassError, Where
from onnx_migrate.files import inline, load
from onnx_migrate.model.graphs import bodies, initializer_names, nested_nodes
from onnx_migrate.model.model import Model

__all__ = ["run_on_graph", "run_on_proto"]

_DROPPED = {
    AttributeProto.TENSORS: "a list of tensors",
    AttributeProto.GRAPHS: "a list of graphs",
    AttributeProto.SPARSE_TENSOR: "a sparse tensor",
    AttributeProto.SPARSE_TENSORS: "a list of sparse tensors",
    AttributeProto.TYPE_PROTO: "a type",
    AttributeProto.TYPE_PROTOS: "a list of types",
}


def run_on_proto(model: Model, function: Callable[[onnx.ModelProto], onnx.ModelProto | None]) -> Model:
    """Give a complete ModelProto to `function`, and return what it made of it: its result, or its argument."""
    whole = inline(model)
    result = function(whole)
    if result is None:
        result = whole
    if not isinstance(result, onnx.ModelProto):
        raise PassError(f"a pass of a ModelProto returned {type(result).__name__}")
    return _loaded(result, model)


def run_on_graph(model: Model, function: Callable[[Any], Any]) -> Model:
    """Give a graphsurgeon Graph to `function`, and return the model of what it made of it.

    Local functions stay as they were: the graph holds the main graph and its sub-graphs. Raises PassError, code
    `surgeon-cannot-hold`, for a model that graphsurgeon cannot carry.
    """
    import onnx_graphsurgeon as gs

    whole = inline(model)
    _refuse_what_is_dropped(whole)
    graph = gs.import_onnx(whole)
    result = function(graph)
    if result is None:
        result = graph
    if not isinstance(result, gs.Graph):
        raise PassError(f"a pass of a Graph returned {type(result).__name__}")
    return _loaded(_grafted(whole, gs.export_onnx(result, do_type_check=False)), model)


def _loaded(proto: onnx.ModelProto, before: Model) -> Model:
    after = load(proto)
    after.name, after.keepalive = before.name, (before.keepalive, proto)
    return after


def _refuse_what_is_dropped(proto: onnx.ModelProto) -> None:
    for function in proto.functions:
        if getattr(function, "overload", ""):
            raise _unheld(f"function {function.domain}:{function.name} has an overload", None)
    for value in (*proto.graph.input, *proto.graph.output):
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise _unheld(f"{value.name!r} is a {str(kind).removesuffix('_type')}", None)
    for located in bodies(proto):
        if isinstance(located.owner, onnx.ModelProto):
            for node in located.body.node:
                _refuse_node(node, Where(located.path, node.name, node.op_type))


def _refuse_node(node: onnx.NodeProto, where: Where) -> None:
    if getattr(node, "overload", ""):
        raise _unheld("calls an overload", where)
    for attribute in node.attribute:
        if attribute.type in _DROPPED:
            raise _unheld(f"{attribute.name!r} is {_DROPPED[attribute.type]}", where)
        if attribute.type == AttributeProto.STRING and not _is_text(attribute.s):
            raise _unheld(f"{attribute.name!r} is not UTF-8", where)


def _unheld(reason: str, where: Where | None) -> PassError:
    return PassError(
        f"graphsurgeon cannot hold this model: {reason}",
        code="surgeon-cannot-hold",
        where=where,
        hint="write the pass for a ModelProto",
    )


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _grafted(before: onnx.ModelProto, after: onnx.ModelProto) -> onnx.ModelProto:
    """Return the old model with the new graph's nodes, weights and shapes in it."""
    result = onnx.ModelProto()
    result.CopyFrom(before)
    _graft_graph(result.graph, after.graph)
    known = {(item.domain or "ai.onnx") for item in result.opset_import}
    result.opset_import.extend(item for item in after.opset_import if (item.domain or "ai.onnx") not in known)
    return result


def _graft_graph(graph: onnx.GraphProto, new: onnx.GraphProto) -> None:
    words = {node.output[0]: node for node in nested_nodes(graph.node) if node.output}
    words = {name: _copy(node) for name, node in words.items()}
    listed = [value.name for value in graph.input]
    given = initializer_names(graph)
    for field, source, wanted in (
        (graph.input, new.input, [name for name in listed if name not in given]),
        (graph.output, new.output, [value.name for value in graph.output]),
    ):
        if [value.name for value in source] != wanted:
            # An interface that changed is the pipeline's to refuse; show it as it is.
            del field[:]
            field.extend(source)
            listed = []
            continue
        fresh = {value.name: value for value in source}
        for value in field:
            if value.name in fresh:
                value.type.tensor_type.elem_type = fresh[value.name].type.tensor_type.elem_type
                _graft_shape(value, fresh[value.name])
    for name in ("node", "initializer", "sparse_initializer", "value_info"):
        if name == "initializer":
            made = {tensor.name for tensor in new.initializer}
            overridable = [t for t in graph.initializer if t.name in listed and t.name not in made]
            new.initializer.extend(overridable)
        graph.ClearField(name)
        getattr(graph, name).extend(getattr(new, name))
    for node in nested_nodes(graph.node):
        old = words.get(node.output[0]) if node.output else None
        if old is not None and old.op_type == node.op_type:
            node.doc_string = old.doc_string
            if hasattr(node, "metadata_props") and not node.metadata_props:
                node.metadata_props.extend(old.metadata_props)


def _graft_shape(value: onnx.ValueInfoProto, new: onnx.ValueInfoProto) -> None:
    """Take over a shape that changed; one that did not keeps its denotations."""
    old, shape = value.type.tensor_type, new.type.tensor_type
    before = [(dim.dim_value, dim.dim_param) for dim in old.shape.dim]
    after = [(dim.dim_value, dim.dim_param) for dim in shape.shape.dim]
    if before != after:
        old.ClearField("shape")
        if shape.HasField("shape"):
            old.shape.CopyFrom(shape.shape)


def _copy(node: onnx.NodeProto) -> onnx.NodeProto:
    words = onnx.NodeProto(op_type=node.op_type, doc_string=node.doc_string)
    if hasattr(node, "metadata_props"):
        words.metadata_props.extend(node.metadata_props)
    return words
