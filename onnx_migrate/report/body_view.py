"""The view of one graph that a page draws: its nodes in order, with marks on those that changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import onnx

from onnx_migrate.model.graphs import Body
from onnx_migrate.rewrite.operator_counts import operator_name

__all__ = ["BodyView", "NodeMark", "ViewedNode", "body_view", "layer_of"]

_SCOPES = "pkg.torch.onnx.name_scopes"
"""The key under which PyTorch's exporter records the modules around a node, as the text of a Python list."""

_NO_MODULE = "_empty_nn_module_stack_from_metadata_hook"
"""The name that PyTorch's exporter records for a node outside all modules."""

_QUOTED = re.compile(r"'([^']*)'")


@dataclass(frozen=True)
class NodeMark:
    """The mark of a changed node: the position of its change, and its kind.

    The kind is "removed", "added" or "changed" for a node in which two models differ. It is "blocked" for a node that a migration
    cannot convert, and "" for one that it changes.
    """

    change: int
    kind: str = ""


@dataclass(frozen=True)
class ViewedNode:
    """A node of a graph, or an input or output of it, whose `operator` is "input" or "output".

    `reads` are the positions of the nodes whose values it reads. `change` is the position of its change, or None for an unchanged
    node. `mark` is that of its `NodeMark`. `layer` is the path of the layer that the exporter recorded, empty if it did not.
    """

    name: str
    operator: str
    reads: tuple[int, ...] = ()
    change: int | None = None
    mark: str = ""
    layer: tuple[str, ...] = ()


@dataclass(frozen=True)
class BodyView:
    """A graph: its nodes in order, without constants."""

    path: str
    nodes: tuple[ViewedNode, ...]

    @property
    def changed(self) -> bool:
        """Whether a node of it has a mark."""
        return any(node.change is not None for node in self.nodes)


def body_view(
    path: str,
    body: Body,
    mark_of: Callable[[onnx.NodeProto], NodeMark | None],
    port_marks: Mapping[tuple[str, str], NodeMark] = MappingProxyType({}),
) -> BodyView:
    """Return the drawn parts of a body, in linear time.

    The key of a mark in `port_marks` is "input" or "output", with the name of that input or output.
    """
    nodes = list[ViewedNode]()
    producer: dict[str, int] = {}

    def add(
        name: str, operator: str, reads: tuple[int, ...], mark: NodeMark | None, layer: tuple[str, ...] = ()
    ) -> None:
        change, kind = (None, "") if mark is None else (mark.change, mark.kind)
        nodes.append(ViewedNode(name, operator, reads, change, kind, layer))

    weights = {tensor.name for tensor in getattr(body, "initializer", ())}
    for value in body.input:
        name = value if isinstance(value, str) else value.name
        if name not in weights:
            producer[name] = len(nodes)
            add(name, "input", (), port_marks.get(("input", name)))
    for node in body.node:
        # Constants are shown at the nodes that read them.
        if node.op_type == "Constant" and not node.input:
            continue
        reads = tuple(dict.fromkeys(producer[name] for name in node.input if name in producer))
        producer.update((name, len(nodes)) for name in node.output if name)
        label = node.name or next(filter(None, node.output), "")
        layer = layer_of(node)
        add(label, operator_name(node.domain, node.op_type), reads, mark_of(node), layer)
    for value in body.output:
        name = value if isinstance(value, str) else value.name
        # An output that is a weight has no node to point from.
        if name in producer:
            add(name, "output", (producer[name],), port_marks.get(("output", name)))
    return BodyView(path, tuple(nodes))


def layer_of(node: onnx.NodeProto) -> tuple[str, ...]:
    """Return the layer in which PyTorch's exporter recorded a node, as in ("network", "blocks.3"); () without a record.

    The record has the full name of each module around the node, the outermost first, and the node itself at the end.
    """
    # Old releases of onnx have no such field.
    text = next((entry.value for entry in getattr(node, "metadata_props", ()) if entry.key == _SCOPES), "")
    names = _QUOTED.findall(text)[:-1]
    layers = list[str]()
    outer = ""
    for name in names:
        if name and name != _NO_MODULE:
            layers.append(name.removeprefix(f"{outer}.") if outer else name)
            outer = name
    return tuple(layers)
