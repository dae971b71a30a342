"""How many nodes, inputs and so on a model may have, so that a pass over them ends in minutes."""

from __future__ import annotations

import onnx

from onnx_migrate.errors import LoadError
from onnx_migrate.model.graphs import bodies, node_label

__all__ = ["WHERE_FROM", "require_size"]

WHERE_FROM = "no exporter writes such a model: look at where the file is from"
"""What helps where a file is made so that it is too much."""

_MOST_OF_MODEL = {"functions": 50_000, "opset_import": 1_000, "metadata_props": 500_000}
_MOST_OF_GRAPH = {"node": 2_000_000, "initializer": 2_000_000, "input": 100_000, "output": 100_000}
"""How many there may be of each; every pass and runtime visits all of them, which takes minutes at these numbers."""

_MOST_OF_NODE = 100_000
"""How many inputs, or outputs, one node may have."""

_PLURALS = {
    "opset_import": "opset imports",
    "metadata_props": "entries of metadata",
    "node": "nodes",
    "initializer": "initializers",
    "input": "inputs",
    "output": "outputs",
}


def require_size(proto: onnx.ModelProto, name: str) -> None:
    """Raise LoadError, code `too-large`, where there is more of something than any model has and than can be handled."""
    for owner, limits in ((proto, _MOST_OF_MODEL), (proto.graph, _MOST_OF_GRAPH)):
        for field, most in limits.items():
            count = len(getattr(owner, field))
            if count > most:
                raise LoadError(
                    f"{name}: it has {count:,} {_PLURALS.get(field, field)}, and at most {most:,} are handled",
                    code="too-large",
                    hint=WHERE_FROM,
                )
    if proto.ByteSize() > 2 * _MOST_OF_NODE:
        _require_size_of_nodes(proto, name)


def _require_size_of_nodes(proto: onnx.ModelProto, name: str) -> None:
    for located in bodies(proto):
        for node in located.body.node:
            count = max(len(node.input), len(node.output))
            if count > _MOST_OF_NODE:
                raise LoadError(
                    f"{name}: the node {node_label(node)!r} ({node.op_type}) has {count:,} inputs or outputs, and at most"
                    f" {_MOST_OF_NODE:,} are handled",
                    code="too-large",
                    hint=WHERE_FROM,
                )
