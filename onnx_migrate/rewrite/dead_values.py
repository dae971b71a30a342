"""Dead code elimination after a rewrite: removes the nodes and initializers whose last reader the rewrite removed."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import onnx

from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import Body, inputs_of_each, names_read, nested_bodies, output_names

__all__ = ["remove_dead_values"]


def remove_dead_values(proto: onnx.ModelProto, names: set[str]) -> list[str]:
    """Remove the producers of values in `names` without readers, and of values that only these producers read.

    Returns the names of the removed values. A value that already had no reader when the model was loaded stays, since the
    pass `cleanup` removes it. An initializer that is also an input stays too, since it is part of the interface. The time is
    linear in the number of nodes.
    """
    if not names:
        return []
    removed: list[str] = []
    bodies: list[Body] = [proto.graph, *proto.functions]
    for body in bodies:
        _BodyUses(body).remove(names, removed)
    return removed


class _BodyUses:
    """The producers of each value of a body and of the sub-graphs in it, and how often each is read.

    Two branches may each have a value of one name: such values count as read as long as any of them is.
    """

    def __init__(self, body: Body) -> None:
        self.reads: Counter[str] = Counter()
        self.bodies = [inner for _, inner in nested_bodies(body)]
        """The body and its sub-graphs, each before those inside it."""
        for inner in self.bodies:
            self.reads.update(output_names(inner))
            if isinstance(inner, onnx.GraphProto):
                self.reads.update(value.name for value in inner.input)
            self.reads.update(chain.from_iterable(inputs_of_each(inner.node)))
        del self.reads[""]  # "" marks absent inputs and outputs, so it is no read

    @cached_property
    def producers(self) -> dict[str, list[tuple[Body, onnx.NodeProto | None]]]:
        """The bodies and nodes that produce each value; the node is None for an initializer."""
        producing_nodes: dict[str, list[tuple[Body, onnx.NodeProto | None]]] = {}
        for inner in self.bodies:
            if isinstance(inner, onnx.GraphProto):
                for tensor in inner.initializer:
                    producing_nodes.setdefault(tensor.name, []).append((inner, None))
                for sparse in inner.sparse_initializer:
                    producing_nodes.setdefault(sparse.values.name, []).append((inner, None))
            for node in inner.node:
                for name in filter(None, node.output):
                    producing_nodes.setdefault(name, []).append((inner, node))
        return producing_nodes

    def remove(self, names: set[str], removed: list[str]) -> None:
        """Remove producers of `names` without readers, then producers that only these read; append the names to `removed`."""
        unread = names - self.reads.keys()
        queue = sorted(name for name in unread if name in self.producers)
        dead_nodes: set[int] = set()
        dead_tensors: set[str] = set()
        edited: set[int] = set()
        while queue:
            name = queue.pop()
            if self.reads[name] or name in dead_tensors:
                continue
            for body, node in self.producers[name]:
                edited.add(id(body))
                if node is None:
                    dead_tensors.add(name)
                elif id(node) not in dead_nodes and not any(self.reads[output] for output in node.output):
                    dead_nodes.add(id(node))
                    read = names_read(node)
                    self.reads.subtract(read)
                    queue.extend(source for source in read if source in self.producers)
                else:
                    continue
                removed.append(name)
        # From the inside out: replacing the nodes of a body copies the sub-graphs in them.
        for body in reversed(self.bodies):
            if id(body) in edited:
                _remove_from(body, dead_nodes, dead_tensors)


def _remove_from(body: Body, dead_nodes: set[int], dead_tensors: set[str]) -> None:
    nodes = list(body.node)
    names = {name for node in nodes if id(node) in dead_nodes for name in node.output} | dead_tensors
    _replace(body.node, [node for node in nodes if id(node) not in dead_nodes])
    if isinstance(body, onnx.GraphProto):
        _replace(body.initializer, [tensor for tensor in body.initializer if tensor.name not in dead_tensors])
        alive = [sparse for sparse in body.sparse_initializer if sparse.values.name not in dead_tensors]
        _replace(body.sparse_initializer, alive)
        _replace(body.value_info, [value for value in body.value_info if value.name not in names])


def _replace(field: Any, kept: list[Any]) -> None:
    if len(kept) != len(field):
        del field[:]
        field.extend(kept)
