"""Runs a user's function of a complete ModelProto or of an onnx-graphsurgeon Graph on a model.

A graphsurgeon Graph cannot represent all content of a model. The bridge refuses models that would lose content,
restores the fields that graphsurgeon drops, and leaves the check of interface and legality to the pipeline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
from onnx import AttributeProto

from onnx_migrate.errors import PassError, Where, require_package
from onnx_migrate.files import inline, load
from onnx_migrate.model.graphs import bodies, function_path, initializer_names, nested_nodes
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
    """Call `function` with a complete ModelProto; return the model that it returns, or its edited argument for None.

    Raises PassError if it returns anything else.
    """
    whole = inline(model)
    result = function(whole)
    if result is None:
        result = whole
    if not isinstance(result, onnx.ModelProto):
        raise PassError(
            f"a pass that takes a ModelProto must return a ModelProto or None; it returned {type(result).__name__}"
        )
    return _loaded(result, model)


def run_on_graph(model: Model, function: Callable[[Any], Any]) -> Model:
    """Call `function` with a graphsurgeon Graph; return the model of the graph that it returns, or edited for None.

    The graph holds the main graph and its sub-graphs; local functions stay unchanged. Raises PassError, with code
    `surgeon-cannot-hold` for a model that graphsurgeon cannot represent, and for a result of another type.
    """
    require_package(
        "onnx_graphsurgeon",
        "this pass",
        "pip install onnx-graphsurgeon",
        "or write it for an onnx.ModelProto",
    )
    import onnx_graphsurgeon as gs

    whole = inline(model)
    # graphsurgeon would silently drop these parts.
    _refuse_what_is_dropped(whole)
    graph = gs.import_onnx(whole)
    result = function(graph)
    # A pass may edit the graph in place.
    if result is None:
        result = graph
    if not isinstance(result, gs.Graph):
        raise PassError(
            f"a pass that takes a Graph must return a Graph or None; it returned {type(result).__name__}"
        )
    return _loaded(_grafted(whole, gs.export_onnx(result, do_type_check=False)), model)


def _loaded(proto: onnx.ModelProto, before: Model) -> Model:
    after = load(proto)
    after.name, after.keepalive = before.name, (before.keepalive, proto)
    return after


def _refuse_what_is_dropped(proto: onnx.ModelProto) -> None:
    for function in proto.functions:
        if getattr(function, "overload", ""):
            raise _cannot_represent(f"{function_path(function)} has an overload", None)
    for value in (*proto.graph.input, *proto.graph.output):
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            raise _cannot_represent(f"{value.name!r} is of type {str(kind).removesuffix('_type')}", None)
    for located in bodies(proto):
        # Local functions stay unchanged, so that they lose nothing.
        if isinstance(located.owner, onnx.ModelProto):
            for node in located.body.node:
                _refuse_node(node, Where(located.path, node.name, node.op_type))


def _refuse_node(node: onnx.NodeProto, where: Where) -> None:
    if getattr(node, "overload", ""):
        raise _cannot_represent("the node calls an overload of a function", where)
    for attribute in node.attribute:
        if attribute.type in _DROPPED:
            raise _cannot_represent(f"attribute {attribute.name!r} is {_DROPPED[attribute.type]}", where)
        if attribute.type == AttributeProto.STRING and not _is_text(attribute.s):
            raise _cannot_represent(f"attribute {attribute.name!r} is text that is not UTF-8", where)


def _cannot_represent(reason: str, where: Where | None) -> PassError:
    return PassError(
        f"onnx-graphsurgeon cannot represent this model: {reason}",
        code="surgeon-cannot-hold",
        where=where,
        hint="write the pass as a function of an onnx.ModelProto",
    )


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _grafted(before: onnx.ModelProto, after: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of model `before` with the nodes, weights and shapes of `after`, whose other fields are incomplete."""
    result = onnx.ModelProto()
    result.CopyFrom(before)
    _graft_graph(result.graph, after.graph)
    # The empty domain is another name of ai.onnx.
    known_domains = {(imported_domain.domain or "ai.onnx") for imported_domain in result.opset_import}
    result.opset_import.extend(
        imported_domain
        for imported_domain in after.opset_import
        if (imported_domain.domain or "ai.onnx") not in known_domains
    )
    return result


def _graft_graph(graph: onnx.GraphProto, new: onnx.GraphProto) -> None:
    # graphsurgeon does not keep documentation, so it is read before.
    documented = {node.output[0]: _documentation(node) for node in nested_nodes(graph.node) if node.output}
    input_names = [value.name for value in graph.input]
    initializers = initializer_names(graph)
    for field, source, wanted in (
        (graph.input, new.input, [name for name in input_names if name not in initializers]),
        (graph.output, new.output, [value.name for value in graph.output]),
    ):
        if [value.name for value in source] != wanted:
            # The pipeline refuses a changed interface, and must see it.
            del field[:]
            field.extend(source)
            input_names = []
            continue
        fresh = {value.name: value for value in source}
        for value in field:
            if value.name in fresh:
                value.type.tensor_type.elem_type = fresh[value.name].type.tensor_type.elem_type
                _graft_shape(value, fresh[value.name])
    for name in ("node", "initializer", "sparse_initializer", "value_info"):
        if name == "initializer":
            exported_names = {tensor.name for tensor in new.initializer}
            overridable = [
                t for t in graph.initializer if t.name in input_names and t.name not in exported_names
            ]
            new.initializer.extend(overridable)
        graph.ClearField(name)
        getattr(graph, name).extend(getattr(new, name))
    for node in nested_nodes(graph.node):
        old = documented.get(node.output[0]) if node.output else None
        # A node that became another operator has no documentation yet.
        if old is not None and old.op_type == node.op_type:
            node.doc_string = old.doc_string
            if hasattr(node, "metadata_props") and not node.metadata_props:
                node.metadata_props.extend(old.metadata_props)


def _graft_shape(value: onnx.ValueInfoProto, new: onnx.ValueInfoProto) -> None:
    """Copy a shape that changed; an unchanged one keeps the denotations of its dims."""
    old, shape = value.type.tensor_type, new.type.tensor_type
    before = [(dim.dim_value, dim.dim_param) for dim in old.shape.dim]
    after = [(dim.dim_value, dim.dim_param) for dim in shape.shape.dim]
    if before != after:
        old.ClearField("shape")
        if shape.HasField("shape"):
            old.shape.CopyFrom(shape.shape)


def _documentation(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return a node with only the operator, doc string and metadata of `node`."""
    copy = onnx.NodeProto(op_type=node.op_type, doc_string=node.doc_string)
    if hasattr(node, "metadata_props"):
        copy.metadata_props.extend(node.metadata_props)
    return copy
