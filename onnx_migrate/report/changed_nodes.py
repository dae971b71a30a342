"""The nodes of a change as JSON, text and drawings show them: attributes as short text, constants by type, shape and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import onnx

from onnx_migrate.report.tensor_text import values_text
from onnx_migrate.rewrite.change_log import Change, attribute_texts
from onnx_migrate.standard.schema import signature_at

__all__ = ["ShownConstant", "ShownNode", "node_after", "node_before", "shown_constants", "shown_helpers"]


@dataclass(frozen=True)
class ShownNode:
    """A node. `attributes` of a change are those that differ, as text."""

    operator: str
    version: int | None
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, str]

    @classmethod
    def of(cls, node: onnx.NodeProto, version: int, attributes: Mapping[str, str]) -> ShownNode:
        """Return the shown parts of a node of this version, with these attributes."""
        return cls(node.op_type, version, node.domain, tuple(node.input), tuple(node.output), attributes)


@dataclass(frozen=True)
class ShownConstant:
    """A constant that a node reads; `value` is None for a large one."""

    type: str
    shape: tuple[int, ...]
    value: str | None


def node_before(change: Change) -> ShownNode:
    """Return the node before the change."""
    return ShownNode.of(change.before, change.version_before, change.attributes[0])


def node_after(change: Change) -> ShownNode | None:
    """Return the node after the change, None if other nodes replaced it."""
    if change.after is None:
        return None
    return ShownNode.of(change.after, change.version_after, change.attributes[1])


def shown_helpers(change: Change) -> tuple[ShownNode, ...]:
    """Return the nodes that a change added beside the node, or that replace it."""
    return tuple(_helper(node, change.opset) for node in change.helpers)


def _helper(node: onnx.NodeProto, opset: int) -> ShownNode:
    form = signature_at(node.domain, node.op_type, opset)
    return ShownNode.of(node, form.since_version if form else opset, attribute_texts(node))


def shown_constants(change: Change) -> dict[str, ShownConstant]:
    """Return the constants that the nodes read, by name."""
    return dict(map(_constant, change.serialised_constants))


@lru_cache(maxsize=1024)
def _constant(summary: bytes) -> tuple[str, ShownConstant]:
    tensor = onnx.TensorProto.FromString(summary)  # cached, because many nodes read the same constants
    is_defined = tensor.data_type in onnx.TensorProto.DataType.values()
    kind = (
        onnx.TensorProto.DataType.Name(tensor.data_type).lower() if is_defined else f"type {tensor.data_type}"
    )
    return tensor.name, ShownConstant(kind, tuple(tensor.dims), values_text(tensor))
