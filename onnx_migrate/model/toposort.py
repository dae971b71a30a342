"""Topological order of a body's nodes."""

from __future__ import annotations

from collections import deque

import onnx

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.model.graphs import subgraphs

__all__ = ["free_names", "sort_model"]

Body = onnx.GraphProto | onnx.FunctionProto


def free_names(node: onnx.NodeProto) -> list[str]:
    """Return the names a node reads: its inputs, and what its sub-graphs read from around them."""
    names = [name for name in node.input if name]
    for _, _, graph in subgraphs(node):
        own = {value.name for value in graph.input}
        own.update(tensor.name for tensor in graph.initializer)
        own.update(sparse.values.name for sparse in graph.sparse_initializer)
        own.update(name for inner in graph.node for name in inner.output)
        names.extend(name for inner in graph.node for name in free_names(inner) if name not in own)
        names.extend(value.name for value in graph.output if value.name not in own)
    return names


def sort_model(proto: onnx.ModelProto) -> list[str]:
    """Put every body's nodes in topological order, keeping the given order wherever it is one already.

    Returns the paths of the bodies that had to be sorted. Raises CannotMigrate for a cycle and for a value that
    two nodes of one body give.
    """
    changed: list[str] = []
    _sort(proto.graph, "graph", changed)
    for function in proto.functions:
        _sort(function, f"function {function.domain}:{function.name}", changed)
    return changed


def _sort(body: Body, path: str, changed: list[str]) -> None:
    nodes = body.node
    producer: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in node.output:
            if name and producer.setdefault(name, index) != index:
                where = Where(path, node.name, node.op_type)
                raise CannotMigrate(f"{name!r} is given by two nodes", code="not-ssa", where=where)
    ordered = True
    for index, node in enumerate(nodes):
        for attribute, _, graph in subgraphs(node):
            _sort(graph, f"{path}/{node.name or node.op_type}:{attribute}", changed)
        for name in free_names(node):
            ordered = ordered and producer.get(name, -1) < index
    if ordered:
        return
    _reorder(
        body, [[producer[name] for name in free_names(node) if name in producer] for node in nodes], path
    )
    changed.append(path)


def _reorder(body: Body, needs: list[list[int]], path: str) -> None:
    """Kahn's algorithm; of the nodes that are ready, the one whose turn was first goes first."""
    followers: list[list[int]] = [[] for _ in needs]
    waiting = [0] * len(needs)
    for index, sources in enumerate(needs):
        for source in set(sources):
            followers[source].append(index)
            waiting[index] += 1
    ready = deque(index for index, count in enumerate(waiting) if not count)
    order: list[int] = []
    while ready:
        index = ready.popleft()
        order.append(index)
        for follower in followers[index]:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    if len(order) < len(needs):
        stuck = body.node[next(index for index, count in enumerate(waiting) if count)]
        where = Where(path, stuck.name, stuck.op_type)
        raise CannotMigrate("the nodes form a cycle", code="cycle", where=where)
    nodes = list(body.node)
    del body.node[:]
    body.node.extend(nodes[index] for index in order)
