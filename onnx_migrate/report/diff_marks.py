"""The marks of a diff: which nodes, inputs and outputs of both models a drawing colours, and to which entry each belongs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import onnx

from onnx_migrate.model.graphs import FunctionKey, called, function_key
from onnx_migrate.report.body_view import NodeMark
from onnx_migrate.report.diff import BodyDiff
from onnx_migrate.report.diff_nodes import DiffEntry

__all__ = ["DiffMarks"]

_PORTS = ("input", "output")

_CHANGED = "changed"


@dataclass
class DiffMarks:
    """The marks of two models. Nodes have their own, those of a sub-graph or function inside them, or those of their weights."""

    nodes: dict[int, NodeMark] = field(default_factory=dict)
    """By the identity of a node of either model, which the differences of its body keep alive."""
    functions: dict[FunctionKey, NodeMark] = field(default_factory=dict)
    weights: list[tuple[str, DiffEntry, NodeMark]] = field(default_factory=list)
    """The path of the body that declares a changed weight, its entry and its mark."""
    firsts: dict[int, int] = field(default_factory=dict)
    """The position of a body's first entry, by the identity of its differences."""

    @classmethod
    def of(cls, bodies: Sequence[tuple[BodyDiff, int]]) -> DiffMarks:
        """Return the marks of bodies, each given with the position of its first entry; sub-graphs follow their bodies."""
        marks = cls()
        for body, first in bodies:
            marks.firsts[id(body)] = first
            marks._mark_own(body, first)
        for body, first in reversed(bodies):
            marks._mark_callers(body, first)
        return marks

    def of_side(
        self, body: BodyDiff, *, elsewhere: str
    ) -> tuple[Callable[[onnx.NodeProto], NodeMark | None], dict[tuple[str, str], NodeMark]]:
        """Return the mark of each node of a body of one model, and those of its inputs and outputs.

        `elsewhere` is the change of the entries that the other model has alone.
        """
        weights = {
            entry.name: mark
            for path, entry, mark in self.weights
            if body.path.startswith(path) and entry.change != elsewhere
        }

        def mark_of(node: onnx.NodeProto) -> NodeMark | None:
            own = self.nodes.get(id(node)) or self.functions.get(called(node))
            read = next((weights[name] for name in node.input if name in weights), None)
            return own if own or read is None else NodeMark(read.change, _CHANGED)

        return mark_of, dict(self._ports(body, elsewhere))

    def _mark_own(self, body: BodyDiff, first: int) -> None:
        """Mark the nodes of a body that differ, and collect the weights that do."""
        for change_index, entry in enumerate(body.entries, first):
            if entry.kind == "weight":
                self.weights.append((body.path, entry, NodeMark(change_index, entry.change)))
        place_of = {id(entry): change_index for change_index, entry in enumerate(body.entries, first)}
        for node in body.nodes:
            mark = NodeMark(place_of[id(node.entry)], node.entry.change)
            # A node on both sides was changed.
            if node.before is not None and node.after is not None:
                mark = NodeMark(mark.change, _CHANGED)
            self.nodes.update((id(side), mark) for side in (node.before, node.after) if side is not None)

    def _mark_callers(self, body: BodyDiff, first: int) -> None:
        """Mark the nodes that a body with differences belongs to: those of its sub-graph, or the calls of its function."""
        if body.pair is None:
            return
        own = (change_index for change_index, entry in enumerate(body.entries, first) if _counts(entry))
        mark_of, _ = self.of_side(body, elsewhere="added")
        inner = (mark.change for mark in map(mark_of, body.pair.before.node) if mark is not None)
        change_index = next(chain(own, inner), None)
        if change_index is None:
            return
        mark = NodeMark(change_index, _CHANGED)
        for caller in body.pair.callers or ():
            self.nodes.setdefault(id(caller), mark)
        # Calls elsewhere are found by the function, not by the node.
        if isinstance(body.pair.before, onnx.FunctionProto):
            self.functions[function_key(body.pair.before)] = mark

    def _ports(self, body: BodyDiff, elsewhere: str) -> Iterator[tuple[tuple[str, str], NodeMark]]:
        for change_index, entry in enumerate(body.entries, self.firsts[id(body)]):
            if entry.kind in _PORTS and entry.change != elsewhere:
                text = (entry.removed if elsewhere == "added" else entry.added)[0]
                name = text.removeprefix(f"{entry.kind} ").rpartition(": ")[0]
                yield (entry.kind, name or entry.name), NodeMark(change_index, entry.change)


def _counts(entry: DiffEntry) -> bool:
    """Whether an entry of a body makes its callers compute something else; declared shapes do not."""
    return entry.differs and entry.kind != "shape"
