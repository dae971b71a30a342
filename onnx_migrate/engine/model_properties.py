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
    """A property that a model can have between two passes; the value completes "the pass needs …".

    That names, types and order of inputs and outputs stay is no property: every pass must keep them.
    """

    VALID_NODES = "nodes that the schemas of the model's opset allow"
    """This covers all graphs, sub-graphs and local functions. It covers no nodes of domains other than ai.onnx."""

    SORTED = "nodes in topological order"
    """In all graphs, sub-graphs and local functions."""

    UNIQUE_NODE_NAMES = "node names that are unique in their graph"
    """ONNX allows repeated ones, ONNX Runtime refuses them. Unnamed nodes are allowed."""

    TARGET_OPSET = "nodes of the opset that the model is migrated to"
    """A model does not show this property: only the pass that migrates it knows the opset."""

    DYNAMIC_DIMS = "the final symbols of the dims that become dynamic"
    """Cannot be read off a model: which dims those are, the pass that makes them symbols knows."""


def is_readable(item: ModelProperty) -> bool:
    """Return whether the model itself shows that it has the property; else only the order of passes does."""
    return item in _VIOLATIONS


def violation(item: ModelProperty, proto: onnx.ModelProto) -> str | None:
    """Return the contradiction to a property; None if it holds or the model does not show it. The time is linear in the nodes."""
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
