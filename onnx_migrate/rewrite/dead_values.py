"""Takes away what a rewrite has left without a reader: constants that moved, shapes that are no longer asked for."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import Any

import onnx

from onnx_migrate.model.graphs import Body, names_read, nested_bodies, output_names

__all__ = ["remove_dead_values"]


def remove_dead_values(proto: onnx.ModelProto, names: set[str]) -> list[str]:
    """Remove the producers of those of `names` that nothing reads, and what only they read; return what went.

    Only what has lost its last reader goes: a dead end that came with the model is left to the clean-up.
    An initializer that is listed as an input is part of the interface and stays.
    """
    if not names:
        return []
    gone: list[str] = []
    bodies: list[Body] = [proto.graph, *proto.functions]
    for body in bodies:
        _Body(body).remove(names, gone)
    return gone


class _Body:
    """A body with the sub-graphs in it, whose names are unique: who gives each value, and how often it is read."""

    def __init__(self, body: Body) -> None:
        self.root = body
        self.reads: Counter[str] = Counter()
        self.givers: dict[str, list[tuple[Body, onnx.NodeProto | None]]] = {}
        for _, inner in nested_bodies(body):
            self.reads.update(output_names(inner))
            if isinstance(inner, onnx.GraphProto):
                self.reads.update(value.name for value in inner.input)
                for tensor in inner.initializer:
                    self.givers.setdefault(tensor.name, []).append((inner, None))
                for sparse in inner.sparse_initializer:
                    self.givers.setdefault(sparse.values.name, []).append((inner, None))
            self.reads.update(chain.from_iterable(node.input for node in inner.node))
            for node in inner.node:
                for name in node.output:
                    self.givers.setdefault(name, []).append((inner, node))

    def remove(self, names: set[str], gone: list[str]) -> None:
        """Take away every giver of `names`, and then of what it read, that has no reader left."""
        queue = sorted(name for name in names if name in self.givers)
        dead_nodes: set[int] = set()
        dead_tensors: set[str] = set()
        bodies: dict[int, Body] = {}
        while queue:
            name = queue.pop()
            if self.reads[name] or name in dead_tensors:
                continue
            for body, node in self.givers[name]:
                bodies[id(body)] = body
                if node is None:
                    dead_tensors.add(name)
                elif id(node) not in dead_nodes and not any(self.reads[output] for output in node.output):
                    dead_nodes.add(id(node))
                    read = names_read(node)
                    self.reads.subtract(read)
                    queue.extend(source for source in read if source in self.givers)
                else:
                    continue
                gone.append(name)
        for body in bodies.values():
            _keep(body, dead_nodes, dead_tensors)


def _keep(body: Body, dead_nodes: set[int], dead_tensors: set[str]) -> None:
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
