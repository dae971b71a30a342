"""Traversal of a model: its bodies, their nodes, the names they read and produce, initializers and inputs.

A *body* is a list of nodes with inputs and outputs: the main graph, a sub-graph, or a local function. A sub-graph is an
attribute of an If, Loop, Scan or of a custom operator. All other modules use this one, so that no module forgets
sub-graphs, functions or sparse initializers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from operator import attrgetter, itemgetter

import onnx
from onnx import AttributeProto

from onnx_migrate.cached import cached_property
from onnx_migrate.standard.ir_versions import IrFeature
from onnx_migrate.standard.schema import is_onnx, signature, versions

__all__ = [
    "Body",
    "BodyKey",
    "FunctionKey",
    "LocatedBody",
    "all_nodes",
    "bodies",
    "called",
    "default_graphs",
    "default_path",
    "directly_inside",
    "fed_inputs",
    "function_key",
    "function_nodes",
    "function_path",
    "initializer_names",
    "initializer_types",
    "inputs_of_each",
    "may_hold_graphs",
    "names_read",
    "names_read_by_each",
    "nested_bodies",
    "nested_nodes",
    "node_label",
    "operator_of",
    "operators_of",
    "output_names",
    "outputs_of_each",
    "producers",
    "stored_weights",
    "subgraph_path",
    "subgraphs",
    "uncalled_functions",
    "values_read",
    "weight_tensors",
]

Body = onnx.GraphProto | onnx.FunctionProto

BodyKey = tuple[int | str, ...]
"""The position of a body in a main graph or function; () is the main graph or function itself.

Each sub-graph appends the index of its node, the attribute's name, and its place among the attribute's graphs (0 for a
single graph).
"""

_NO_NODE = -1
"""Stands in a BodyKey for the index of a node where a graph is the default value of a function's attribute."""

FunctionKey = tuple[str, str, str]
"""A local function's domain, name and overload."""


@dataclass(frozen=True)
class LocatedBody:
    """A body and its position in the model."""

    body: Body
    path: str
    """The path that messages show, as in "graph/branch:then_branch" or "function com.acme:Block"."""
    key: BodyKey
    owner: onnx.ModelProto | onnx.FunctionProto
    """Whose opset imports hold in the body: the model's, or those of the function that it is or that contains it."""

    @cached_property
    def operators(self) -> Counter[tuple[str, str]]:
        """The number of nodes of each domain and operator at the first access, before nodes with sub-graphs are added."""
        return Counter(map(operator_of, self.body.node))


operator_of = attrgetter("domain", "op_type")
"""Returns the domain and operator of a node."""

_inputs, _outputs = attrgetter("input"), attrgetter("output")
_whole = itemgetter(slice(None))

_NONE: tuple[tuple[str, int, onnx.GraphProto], ...] = ()


def function_key(function: onnx.FunctionProto) -> FunctionKey:
    """Return the domain, operator and overload of a node that calls `function`."""
    return function.domain, function.name, getattr(function, "overload", "")


def called(node: onnx.NodeProto) -> FunctionKey:
    """Return the function a node would call, if there is one of that key."""
    return node.domain, node.op_type, getattr(node, "overload", "")


def uncalled_functions(proto: onnx.ModelProto) -> set[FunctionKey]:
    """Return the local functions that no node of the main graph calls, itself or through other functions."""
    functions = {function_key(function): function for function in proto.functions}
    waiting = [called(node) for node in nested_nodes(proto.graph.node)] if functions else []
    while waiting:
        function = functions.pop(waiting.pop(), None)
        if function is not None:
            waiting += [called(node) for node in function_nodes(function)]
    return set(functions)


def function_path(function: onnx.FunctionProto) -> str:
    """Return the path of a local function's body, as messages show it."""
    return f"function {function.domain}:{function.name}"


def default_path(function: onnx.FunctionProto, attribute: str, place: int) -> str:
    """Return the path of a graph that is the default value of a function's attribute; `place` as in a BodyKey."""
    return f"{function_path(function)}:{attribute}{f'[{place}]' if place else ''}"


def node_label(node: onnx.NodeProto) -> str:
    """Return the label of a node in messages: its name, or else that of its first output, which migrations keep."""
    return node.name or next((name for name in node.output if name), node.op_type)


def subgraph_path(path: str, node: onnx.NodeProto, attribute: str, place: int) -> str:
    """Return the path of a sub-graph of `node`, a node of the body at `path`; `place` as in a BodyKey."""
    return f"{path}/{node_label(node)}:{attribute}{f'[{place}]' if place else ''}"


def subgraphs(node: onnx.NodeProto) -> Iterable[tuple[str, int, onnx.GraphProto]]:
    """Return the attribute's name, place in the attribute, and graph of each sub-graph of one node."""
    return _graphs(node) if may_hold_graphs(node.domain, node.op_type) else _NONE


def _graphs(node: onnx.NodeProto) -> Iterator[tuple[str, int, onnx.GraphProto]]:
    return _attribute_graphs(node.attribute)


def _attribute_graphs(
    attributes: Iterable[AttributeProto],
) -> Iterator[tuple[str, int, onnx.GraphProto]]:
    for attribute in attributes:
        if attribute.type == AttributeProto.GRAPH:
            yield attribute.name, 0, attribute.g
        elif attribute.type == AttributeProto.GRAPHS:
            for index, graph in enumerate(attribute.graphs):
                yield attribute.name, index, graph


@cache
def may_hold_graphs(domain: str, operator: str) -> bool:
    """Return whether an operator may have a graph as an attribute; reading all attributes of all nodes is slower."""
    # Nothing is known about operators of other domains.
    if not is_onnx(domain):
        return True
    known_versions = versions(domain, operator)
    kinds = {
        kind
        for version in known_versions
        for kind in signature(domain, operator, version).attributes.values()
    }
    return not known_versions or not kinds.isdisjoint((AttributeProto.GRAPH, AttributeProto.GRAPHS))


def bodies(proto: onnx.ModelProto) -> Iterator[LocatedBody]:
    """Yield every body of a model: the main graph, then each local function, each before the sub-graphs inside it.

    The default graphs of a function's attributes follow it.

    Sub-graphs of a body are looked up after it was yielded, so its list of nodes may be edited in the meantime.
    """
    yield from _located(proto.graph, "graph", (), proto)
    for function in proto.functions:
        yield from _located(function, function_path(function), (), function)
        for attribute, index, graph in default_graphs(function):
            path = default_path(function, attribute, index)
            yield from _located(graph, path, (_NO_NODE, attribute, index), function)


def _located(
    body: Body, path: str, key: BodyKey, owner: onnx.ModelProto | onnx.FunctionProto
) -> Iterator[LocatedBody]:
    located = LocatedBody(body, path, key, owner)
    yield located
    for index, node, attribute, graph_index, graph in _inside(body, located.operators):
        inner = subgraph_path(path, node, attribute, graph_index)
        yield from _located(graph, inner, (*key, index, attribute, graph_index), owner)


def directly_inside(body: Body) -> Iterator[tuple[int, onnx.NodeProto, str, int, onnx.GraphProto]]:
    """Yield the sub-graphs of a body's nodes, each with its node and that one's index; not those inside sub-graphs."""
    return _inside(body, operators_of(body.node))


def _inside(
    body: Body, operators: Iterable[tuple[str, str]]
) -> Iterator[tuple[int, onnx.NodeProto, str, int, onnx.GraphProto]]:
    holders = _holders(operators)
    # Most bodies have no operator with a graph.
    if not holders:
        return
    for index, operator in enumerate(map(operator_of, body.node)):
        if operator in holders:
            node = body.node[index]
            for attribute, graph_index, graph in _graphs(node):
                yield index, node, attribute, graph_index, graph


def operators_of(nodes: Iterable[onnx.NodeProto]) -> set[tuple[str, str]]:
    """Return the domain and operator of each of these nodes, without those of sub-graphs."""
    return set(map(operator_of, nodes))


def _holders(operators: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return which operators may hold graphs; for most bodies none, so that their nodes are not searched."""
    return {operator for operator in operators if may_hold_graphs(*operator)}


def nested_bodies(body: Body) -> Iterator[tuple[BodyKey, Body]]:
    """Yield one body and all sub-graphs inside it in the order of `bodies`, each with its key."""
    return _nested(body, ())


def _nested(body: Body, key: BodyKey) -> Iterator[tuple[BodyKey, Body]]:
    yield key, body
    for index, _, attribute, graph_index, graph in directly_inside(body):
        yield from _nested(graph, (*key, index, attribute, graph_index))


def all_nodes(proto: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    """Yield every node of a model: of the main graph, of local functions, and of sub-graphs."""
    yield from nested_nodes(proto.graph.node)
    for function in proto.functions:
        yield from function_nodes(function)


def default_graphs(function: onnx.FunctionProto) -> Iterator[tuple[str, int, onnx.GraphProto]]:
    """Yield the graphs that are default values of a function's attributes, as `subgraphs` does those of a node.

    They read the values of the function in which a node refers to the attribute.
    """
    return _attribute_graphs(function.attribute_proto) if function.attribute_proto else iter(())


def function_nodes(function: onnx.FunctionProto) -> Iterator[onnx.NodeProto]:
    """Yield the nodes of a function as `nested_nodes` does, then those of the default graphs of its attributes."""
    yield from nested_nodes(function.node)
    for _, _, graph in default_graphs(function):
        yield from nested_nodes(graph.node)


def nested_nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield these nodes in order, each followed by the nodes of its sub-graphs."""
    holders = _holders(operators_of(nodes))
    if not holders:
        yield from nodes
        return
    for node in nodes:
        yield node
        if (node.domain, node.op_type) in holders:
            for _, _, graph in _graphs(node):
                yield from nested_nodes(graph.node)


def names_read(node: onnx.NodeProto) -> list[str]:
    """Return the names a node reads, once for each read: its inputs, and the free names of its sub-graphs.

    A name is free in a sub-graph that reads it or returns it as an output, and does not define it. An input, an
    initializer or a node of the sub-graph defines a name.
    """
    names = list(filter(None, node.input[:]))
    # Reading the attributes of each node takes long.
    if not may_hold_graphs(node.domain, node.op_type):
        return names
    for _, _, graph in _graphs(node):
        own = {value.name for value in graph.input} | initializer_names(graph)
        own.update(name for inner in graph.node for name in inner.output)
        # The empty name stands for an omitted input.
        own.add("")
        names.extend(name for inner in graph.node for name in names_read(inner) if name not in own)
        names.extend(value.name for value in graph.output if value.name not in own)
    return names


def inputs_of_each(nodes: Iterable[onnx.NodeProto]) -> Iterator[list[str]]:
    """Yield the inputs of each node; "" stands for an omitted one.

    A slice of a protobuf field is a list. A loop over the field itself ends with an exception, which takes longer than
    the rest.
    """
    return map(_whole, map(_inputs, nodes))


def outputs_of_each(nodes: Iterable[onnx.NodeProto]) -> Iterator[list[str]]:
    """Yield the outputs of each node; "" stands for an omitted one. The speed is that of `inputs_of_each`."""
    return map(_whole, map(_outputs, nodes))


def names_read_by_each(
    nodes: Sequence[onnx.NodeProto], operators: Iterable[tuple[str, str]]
) -> Iterator[list[str]]:
    """Yield for each node the names that `names_read` returns, and maybe "" for an omitted input; quicker for many nodes.

    `operators` has the domain and operator of each node, and maybe others.
    """
    return map(names_read, nodes) if _holders(operators) else inputs_of_each(nodes)


def values_read(graph: onnx.GraphProto, ir_version: int) -> set[str]:
    """Return the names of a main graph that a node, an output or a caller reads.

    A caller does so who may override an initializer: one that is an input too, from the IR version on that has others.
    """
    read = set(chain.from_iterable(names_read_by_each(graph.node, operators_of(graph.node))))
    listed = graph.input if ir_version >= IrFeature.UNLISTED.since else ()
    return read | {value.name for value in chain(listed, graph.output)}


def producers(body: Body) -> dict[str, onnx.NodeProto]:
    """Return the node that computes each value of a body, by the value's name; sub-graphs are not included."""
    return {name: node for node in body.node for name in node.output[:] if name}


def output_names(body: Body) -> list[str]:
    """Return the names of a body's outputs, in order."""
    return [value.name for value in body.output] if isinstance(body, onnx.GraphProto) else list(body.output)


def initializer_types(graph: onnx.GraphProto) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """Yield the name, element type and shape of each initializer, of sparse ones the dense type and shape.

    A sparse initializer is named by its `values` (SparseTensorProto in onnx.proto); runtimes expand it to a dense
    tensor when they load the model.
    """
    for tensor in graph.initializer:
        yield tensor.name, tensor.data_type, tuple(tensor.dims)
    for sparse in graph.sparse_initializer:
        yield sparse.values.name, sparse.values.data_type, tuple(sparse.dims)


def stored_weights(found: Iterable[LocatedBody]) -> Iterator[tuple[onnx.TensorProto, ...]]:
    """Yield the constants that these bodies store: initializers and the values of Constants.

    A sparse one counts as two tensors, its values and its indices.
    """
    for located in found:
        body = located.body
        if isinstance(body, onnx.GraphProto):
            yield from ((tensor,) for tensor in body.initializer)
            yield from ((sparse.values, sparse.indices) for sparse in body.sparse_initializer)
        # The nodes are only searched if one is a Constant.
        for node in body.node if any(name == "Constant" for _, name in located.operators) else ():
            if node.op_type == "Constant" and is_onnx(node.domain):
                for attribute in node.attribute:
                    if attribute.name == "value":
                        yield (attribute.t,)
                    elif attribute.name == "sparse_value":
                        yield attribute.sparse_tensor.values, attribute.sparse_tensor.indices


def weight_tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield the tensors of `stored_weights` of all bodies of a model."""
    return chain.from_iterable(stored_weights(bodies(proto)))


def initializer_names(graph: onnx.GraphProto) -> set[str]:
    """Return the names of a graph's initializers, of sparse ones too."""
    names = {tensor.name for tensor in graph.initializer}
    names.update(sparse.values.name for sparse in graph.sparse_initializer)
    return names


def fed_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that a caller must feed, in order: those that are not initializers as well."""
    initialized = initializer_names(graph)
    return [value for value in graph.input if value.name not in initialized]
