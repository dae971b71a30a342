"""The view of a result that a page draws: the changed nodes in their final form, and the graph around them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import onnx

from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.model import Model
from onnx_migrate.report.body_view import BodyView, NodeMark, body_view
from onnx_migrate.report.node_version import node_version
from onnx_migrate.rewrite.change_log import Change, Exactness
from onnx_migrate.rewrite.constant_summary import constant_summaries
from onnx_migrate.standard.opsets import onnx_opset

__all__ = ["ResultView"]

_ORDER = tuple(Exactness)
"""The kinds of exactness from best to worst."""


@dataclass(frozen=True)
class ResultView:
    """The changes whose nodes are in the result, each from the original's node to the final ones.

    `vanished` counts changed nodes that are not in the result, because the simplifier folded or fused them. `bodies` are the main
    graph, and those of the others that have a changed node.
    """

    changes: tuple[Change, ...]
    vanished: int
    bodies: tuple[BodyView, ...]

    @classmethod
    def of(cls, changes: Iterable[Change], result: Model) -> ResultView:
        """Follow changes to the nodes of the result, in linear time."""
        index = _ResultIndex(result)
        final, vanished, owner = list[Change](), 0, dict[int, int]()
        for history in _histories(changes):
            nodes = history.nodes_in(index)
            change = None if not nodes else _final(history, nodes, index)
            if change is None:
                # Nodes that a later pass removed are only counted.
                vanished += not nodes
                continue
            owner |= dict.fromkeys((id(node) for node, _ in nodes), len(final))
            final.append(change)
        marks = {node: NodeMark(change_index) for node, change_index in owner.items()}
        bodies = tuple(
            body_view(scope.path, scope.body, lambda node: marks.get(id(node))) for scope in index.scopes
        )
        shown = (body for body in bodies[1:] if body.changed)
        return cls(tuple(final), vanished, (*bodies[:1], *shown))


@dataclass
class _History:
    """All changes of one node of the original, in order, including changes of the nodes that replaced it."""

    changes: list[Change] = field(default_factory=list)

    def written(self) -> Iterator[tuple[onnx.NodeProto, str]]:
        """Yield the nodes that the changes wrote, the last first, each with the path of its scope."""
        for change in reversed(self.changes):
            for node in filter(None, (change.after, *change.helpers)):
                yield node, change.where.scope

    def nodes_in(self, index: _ResultIndex) -> list[tuple[onnx.NodeProto, Scope]]:
        """Return the nodes of the result that the changes wrote, constants left out, in the order of the result."""
        nodes = {}
        for node, path in self.written():
            entry = index.find(node, path)
            if entry is not None and entry[0].op_type != "Constant":
                nodes[id(entry[0])] = entry
        return sorted(nodes.values(), key=lambda entry: index.position[id(entry[0])])


def _histories(changes: Iterable[Change]) -> list[_History]:
    """Group changes by the original's node that they started from."""
    histories: list[_History] = []
    owner: dict[tuple[str, str], _History] = {}
    for change in changes:
        scope, outputs = change.where.scope, list(filter(None, change.before.output))
        history = next((owner[scope, name] for name in outputs if (scope, name) in owner), None)
        if history is None:
            history = _History()
            histories.append(history)
        history.changes.append(change)
        written = filter(None, (change.after, *change.helpers))
        names = chain(outputs, *(node.output for node in written))
        for name in names:
            # A later change may start from a node that this one wrote.
            owner.setdefault((scope, name), history)
    return histories


class _ResultIndex:
    """Finds nodes of the result by what they compute, or by name."""

    def __init__(self, result: Model) -> None:
        proto = self.proto = result.proto
        tops = scopes(proto, result.weights, result_ir_version=proto.ir_version)
        self.scopes = list(chain.from_iterable(top.nested() for top in tops))
        self.position: dict[int, int] = {}
        self._found: dict[tuple[str, str, str], tuple[onnx.NodeProto, Scope]] = {}
        for scope in self.scopes:
            for node in scope.body.node:
                self.position[id(node)] = len(self.position)
                for name in (*node.output, node.name):
                    if name:
                        self._found.setdefault((scope.path, name, node.op_type), (node, scope))

    def find(self, node: onnx.NodeProto, path: str) -> tuple[onnx.NodeProto, Scope] | None:
        """Return the node of the result with one of this node's outputs, or its name, and the same operator."""
        for name in filter(None, (*node.output, node.name)):
            entry = self._found.get((path, name, node.op_type))
            if entry is not None:
                return entry
        return None


def _final(
    history: _History, nodes: Sequence[tuple[onnx.NodeProto, Scope]], index: _ResultIndex
) -> Change | None:
    """Return one change from the original's node to these nodes of the result; None if the node is the same again."""
    first, main = history.changes[0], _successor(history, [node for node, _ in nodes])
    written = None if main is None else _serialised(main)
    version = 0 if main is None else node_version(main, index.proto)
    # The passes may undo each other.
    if main is not None and version == first.version_before and _content(main) == _content(first.before):
        return None
    helpers = tuple(node for node, _ in nodes if node is not main)
    constants = dict.fromkeys(first.serialised_constants)
    for node, scope in nodes:
        constants |= dict.fromkeys(constant_summaries(scope, node.input))
    return Change(
        ", ".join(dict.fromkeys(change.pass_name for change in history.changes)),
        first.where,
        first.serialised_before,
        first.version_before,
        written,
        version,
        tuple(node.op_type for node in helpers),
        "; ".join(dict.fromkeys(change.reason for change in history.changes if change.reason)),
        max((change.exactness for change in history.changes), key=_ORDER.index),
        onnx_opset(index.proto.opset_import, ir_version=index.proto.ir_version) or 1,
        tuple(map(_serialised, helpers)),
        tuple(constants),
    )


def _successor(history: _History, nodes: Sequence[onnx.NodeProto]) -> onnx.NodeProto | None:
    """Return the node that replaced the original's node, found by outputs or name; None if several nodes replaced it."""
    if len(nodes) == 1:
        return nodes[0]
    first = history.changes[0]
    outputs = set(filter(None, first.before.output))
    own = [change for change in history.changes if outputs.intersection(change.before.output)]
    if own and own[-1].after is None:
        return None
    # The name comes second: nodes of a model may share one.
    by_output = (node for node in nodes if outputs.intersection(node.output))
    by_name = (node for node in nodes if node.name and node.name == first.before.name)
    return next(chain(by_output, by_name), None)


def _content(node: onnx.NodeProto) -> tuple[object, ...]:
    """Return the operator, the values and the attributes of a node, without its name and its empty fields."""
    attributes = sorted(map(_serialised, node.attribute))
    return node.domain, node.op_type, list(node.input), list(node.output), attributes


def _serialised(message: onnx.NodeProto | onnx.AttributeProto) -> bytes:
    return message.SerializeToString(deterministic=True)
