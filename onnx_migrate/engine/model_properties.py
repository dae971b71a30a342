"""The properties of a model that a pass can require, and ensure for the passes after it."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import onnx

from onnx_migrate.errors import IllegalModel
from onnx_migrate.model.graphs import bodies, names_read, node_label
from onnx_migrate.model.legality import check_legal

__all__ = ["ModelProperty", "is_readable", "violation"]


class ModelProperty(Enum):
    """What can hold of a model between two passes; the value completes "the pass needs …".

    That names, types and order of inputs and outputs stay is no property: every pass must keep them.
    """

    VALID_NODES = "nodes that the schemas of the model's opset allow"
    """In all graphs, sub-graphs and local functions; nodes of other domains than ai.onnx are not judged."""

    SORTED = "nodes in topological order"
    """In all graphs, sub-graphs and local functions."""

    UNIQUE_NODE_NAMES = "node names that are unique in their graph"
    """ONNX allows repeated ones, ONNX Runtime refuses them. Unnamed nodes are allowed."""

    TARGET_OPSET = "nodes of the opset that the model is migrated to"
    """Cannot be read off a model: which opset that is, the pass that brings it there knows."""

    DYNAMIC_DIMS = "the final symbols of the dims that become dynamic"
    """Cannot be read off a model: which dims those are, the pass that makes them symbols knows."""


def is_readable(item: ModelProperty) -> bool:
    """Return whether a look at a model shows that it has the property; else only the order of passes does."""
    return item in _VIOLATIONS


def violation(item: ModelProperty, proto: onnx.ModelProto) -> str | None:
    """Return what contradicts a property, None if it holds or cannot be read off a model. Linear in the nodes."""
    find = _VIOLATIONS.get(item)
    return find(proto) if find else None


def _invalid_node(proto: onnx.ModelProto) -> str | None:
    try:
        check_legal(proto)
    except IllegalModel as error:
        return str(error)
    return None


def _unsorted_node(proto: onnx.ModelProto) -> str | None:
    for located in bodies(proto):
        read: set[str] = set()
        for node in located.body.node:
            read.update(names_read(node))
            early = read.intersection(node.output)
            if early:
                return f"{min(early)!r} is read before node {node_label(node)!r}, which outputs it"
    return None


def _repeated_name(proto: onnx.ModelProto) -> str | None:
    for located in bodies(proto):
        seen: set[str] = set()
        for node in located.body.node:
            if node.name in seen:
                return f"two nodes of {located.path} are called {node.name!r}"
            if node.name:
                seen.add(node.name)
    return None


_VIOLATIONS: dict[ModelProperty, Callable[[onnx.ModelProto], str | None]] = {
    ModelProperty.VALID_NODES: _invalid_node,
    ModelProperty.SORTED: _unsorted_node,
    ModelProperty.UNIQUE_NODE_NAMES: _repeated_name,
}
