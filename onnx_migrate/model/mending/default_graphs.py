"""Graphs that are default values of functions' attributes are written where nodes refer to them.

Behind this, every graph of a model is the main graph, a function, or an attribute of a node.

    f (a, c) => (b)  attribute body: {q = Exp (a)}      f (a, c) => (b)
    { b = If (c) <then_branch = @body, ...> }      →    { b = If (c) <then_branch = {q = Exp (a)}, ...> }
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import onnx
from onnx import AttributeProto

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.model.graphs import (
    FunctionKey,
    all_nodes,
    called,
    function_key,
    function_path,
    nested_nodes,
)
from onnx_migrate.model.validity.functions import defaults_inside_first
from onnx_migrate.model.validity.size_limits import MOST_NODES, WHERE_FROM

__all__ = ["bind_default_graphs"]

_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def bind_default_graphs(proto: onnx.ModelProto) -> list[str]:
    """Write default graphs where nodes refer to them, in place; return the paths of the functions that had some.

    A call that gives a graph of its own calls a function without the default. No default graph may contain itself. Raises
    CannotMigrate, code `too-large`, where the copies are too many.
    """
    bound = []
    for function in list(proto.functions):
        graphs = {
            attribute.name: attribute for attribute in function.attribute_proto if attribute.type in _GRAPHS
        }
        if not graphs:
            continue
        bound.append(function_path(function))
        _require_size(function)
        _keep_own_graphs(proto, function, set(graphs))
        # Inner defaults come first, so that a copy of an outer one already holds them.
        for name in defaults_inside_first(function):
            _bind(_nodes_of(graphs[name]), graphs)
        _bind(nested_nodes(function.node), graphs)
        other_attributes = [
            attribute for attribute in function.attribute_proto if attribute.name not in graphs
        ]
        del function.attribute_proto[:]
        function.attribute_proto.extend(other_attributes)
    return bound


def _nodes_of(attribute: AttributeProto) -> list[onnx.NodeProto]:
    graphs = [attribute.g] if attribute.type == AttributeProto.GRAPH else attribute.graphs
    return [node for graph in graphs for node in nested_nodes(graph.node)]


def _bind(nodes: Iterable[onnx.NodeProto], graphs: dict[str, AttributeProto]) -> None:
    for node in list(nodes):
        for attribute in node.attribute:
            default = graphs.get(attribute.ref_attr_name)
            if default is not None:
                name = attribute.name
                attribute.CopyFrom(default)
                attribute.name = name


def _require_size(function: onnx.FunctionProto) -> None:
    """Refuse default graphs that contain each other so often that their copies have too many nodes."""
    sizes: Counter[str] = Counter()
    for name in defaults_inside_first(function):
        # Inner defaults are counted before those that contain them.
        attribute = next(default for default in function.attribute_proto if default.name == name)
        sizes[name] = _size(_nodes_of(attribute), sizes)
    total = _size(nested_nodes(function.node), sizes)
    if total > MOST_NODES:
        raise CannotMigrate(
            f"its default graphs stand for {total:,} nodes, and at most {MOST_NODES:,} are handled",
            code="too-large",
            where=Where(function_path(function)),
            hint=WHERE_FROM,
        )


def _size(nodes: Iterable[onnx.NodeProto], sizes: Counter[str]) -> int:
    return sum(1 + sum(sizes[attribute.ref_attr_name] for attribute in node.attribute) for node in nodes)


def _keep_own_graphs(proto: onnx.ModelProto, function: onnx.FunctionProto, names: set[str]) -> None:
    """Let calls that give one of these attributes call a copy of the function, in which it has no default."""
    key = function_key(function)
    calls = [node for node in all_nodes(proto) if called(node) == key]
    # Only these calls need the copy without the default.
    giving = [node for node in calls if not names.isdisjoint(attribute.name for attribute in node.attribute)]
    if not giving:
        return
    overridden = {attribute.name for node in giving for attribute in node.attribute} & names
    # Calls without a graph of their own still need the default, so the function itself keeps it.
    copy = proto.functions.add()
    copy.CopyFrom(function)
    copy.name = _free_name(proto, key)
    _drop_defaults(copy, overridden)
    for node in giving:
        node.op_type = copy.name


def _drop_defaults(function: onnx.FunctionProto, names: set[str]) -> None:
    other_defaults = [attribute for attribute in function.attribute_proto if attribute.name not in names]
    del function.attribute_proto[:]
    function.attribute_proto.extend(other_defaults)
    function.attribute.extend(sorted(names))


def _free_name(proto: onnx.ModelProto, key: FunctionKey) -> str:
    function_names = {(function.domain, function.name) for function in proto.functions}
    number = 1
    while (key[0], f"{key[1]}_{number}") in function_names:
        number += 1
    return f"{key[1]}_{number}"
