"""The view of two models that a page draws beside each other: their graphs with marks, and the changes of each node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain

import onnx

from onnx_migrate.errors import Where
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.graphs import node_label
from onnx_migrate.model.model import Model
from onnx_migrate.report.body_view import BodyView, body_view
from onnx_migrate.report.data import ModelSummary
from onnx_migrate.report.diff import BodyDiff, BodyPair
from onnx_migrate.report.diff_marks import DiffMarks
from onnx_migrate.report.diff_nodes import DiffEntry, NodeDiff
from onnx_migrate.report.node_version import node_version
from onnx_migrate.rewrite.change_log import Change
from onnx_migrate.rewrite.constant_summary import constant_summaries

__all__ = ["DiffView", "PlacedEntry", "file_names"]


@dataclass(frozen=True)
class PlacedEntry:
    """An entry of a diff, and its position among all entries."""

    place: int
    entry: DiffEntry


@dataclass(frozen=True)
class DiffView:
    """Two models by file name and summary, and their differences.

    `graphs` are the main graphs beside each other, and those of sub-graphs and functions with a difference. `changes` are the
    nodes that both models have, each with the position of its entry. `entries` are all other differences.
    """

    names: tuple[str, str]
    summaries: tuple[ModelSummary, ModelSummary]
    graphs: tuple[tuple[BodyView, BodyView], ...]
    changes: tuple[tuple[int, Change], ...]
    entries: tuple[PlacedEntry, ...]

    @classmethod
    def of(cls, before: Model, after: Model, bodies: Sequence[BodyDiff]) -> DiffView:
        """Return the view of two models with these differences, in linear time."""
        placed = [
            PlacedEntry(position, entry)
            for position, entry in enumerate(chain.from_iterable(body.entries for body in bodies))
        ]
        place_of = {id(placed_entry.entry): placed_entry.place for placed_entry in placed}
        changes = list(_Changes(before, after).of(bodies, place_of))
        drawn = {position for position, _ in changes}
        return cls(
            file_names(before.name, after.name),
            (ModelSummary.of(before.proto), ModelSummary.of(after.proto)),
            tuple(_graphs(bodies)),
            tuple(changes),
            tuple(placed_entry for placed_entry in placed if placed_entry.place not in drawn),
        )

    @property
    def same(self) -> bool:
        """Whether nothing differs but names, orders and the fields that numbers are stored in."""
        return not self.changes and not any(placed_entry.entry.differs for placed_entry in self.entries)

    def of_kind(self, *kinds: str, side: str = "") -> list[PlacedEntry]:
        """Return the entries of some kinds in order; with `side`, only those that are "removed" or "added"."""
        return [
            placed_entry
            for placed_entry in self.entries
            if placed_entry.entry.kind in kinds
            and placed_entry.entry.differs
            and side in ("", placed_entry.entry.change)
        ]


def file_names(*names: str) -> tuple[str, str]:
    """Return two paths without their folders, unless the files have the same name."""
    first, second = (name.replace("\\", "/").rpartition("/")[2] for name in names)
    return (first, second) if first != second and first and second else (names[0], names[1])


def _graphs(bodies: Sequence[BodyDiff]) -> Iterator[tuple[BodyView, BodyView]]:
    """Yield the main graphs, and all others with a marked node."""
    firsts = accumulate((len(body.entries) for body in bodies), initial=0)
    # Numbers of entries continue from body to body.
    marks = DiffMarks.of([*zip(bodies, firsts, strict=False)])
    for body in bodies:
        if body.pair is not None:
            pair = body.pair
            before_view, after_view = (
                body_view(body.path, side, *marks.of_side(body, elsewhere=elsewhere))
                for side, elsewhere in ((pair.before, "added"), (pair.after, "removed"))
            )
            if body.path == "graph" or before_view.changed or after_view.changed:
                yield before_view, after_view


class _Changes:
    """Writes the nodes that both models have as changes, which a page draws."""

    def __init__(self, before: Model, after: Model) -> None:
        self._models = before, after
        tops = [
            scopes(model.proto, model.weights, result_ir_version=model.proto.ir_version)
            for model in (before, after)
        ]
        self._nested = [scope for top in chain(*tops) for scope in top.nested()]
        self._scopes = {id(scope.body): scope for scope in self._nested}

    def of(self, bodies: Iterable[BodyDiff], place_of: Mapping[int, int]) -> Iterator[tuple[int, Change]]:
        """Yield the changes, each with the position of its entry."""
        for body in bodies:
            for node in body.nodes:
                if body.pair is not None and node.before is not None and node.after is not None:
                    yield place_of[id(node.entry)], self._change(body.path, body.pair, node)

    def _change(self, path: str, pair: BodyPair, node: NodeDiff) -> Change:
        """Return a change whose values have the names of the first model."""
        before, after = node.before, onnx.NodeProto()
        assert before is not None
        assert node.after is not None
        after.CopyFrom(node.after)
        for names in (after.input, after.output):
            # A comparison by name needs one set of names.
            names[:] = [pair.renamed.get(name, name) for name in names]
        owners = (
            body if isinstance(body, onnx.FunctionProto) else None for body in (pair.before, pair.after)
        )
        versions = [
            node_version(each, model.proto, owner)
            for each, model, owner in zip((before, node.after), self._models, owners, strict=True)
        ]
        return Change(
            "diff",
            Where(path, node_label(before), before.op_type),
            before.SerializeToString(deterministic=True),
            versions[0],
            after.SerializeToString(deterministic=True),
            versions[1],
            (),
            "; ".join(_attribute_changes(node.entry)),
            serialised_constants=tuple(self._constants(pair, before, node.after)),
        )

    def _constants(self, pair: BodyPair, before: onnx.NodeProto, after: onnx.NodeProto) -> Iterator[bytes]:
        """Yield the constants that the nodes read, without those whose values differ: a change has one for each name."""
        sides = [
            self._summaries(pair.before, before.input, {}),
            self._summaries(pair.after, after.input, pair.renamed),
        ]
        for name, summary in {**sides[1], **sides[0]}.items():
            if sides[0].get(name, summary) == sides[1].get(name, summary):
                yield summary

    def _summaries(
        self, body: onnx.GraphProto | onnx.FunctionProto, names: Iterable[str], renamed: Mapping[str, str]
    ) -> dict[str, bytes]:
        """Return the summaries of the constants among some values, by their names in the first model."""
        scope: Scope = self._scopes[id(body)]
        summaries = {}
        for name in names:
            # Constants of the second model get names of the first, so that they compare.
            for summary in constant_summaries(scope, [name]):
                tensor = onnx.TensorProto.FromString(summary)
                tensor.name = renamed.get(name, name)
                summaries[tensor.name] = tensor.SerializeToString(deterministic=True)
        return summaries


def _attribute_changes(entry: DiffEntry) -> Iterator[str]:
    """Yield how each attribute of a changed node differs, as in "alpha: 0.1 → 0.2"."""
    old, new = (
        dict(text.split(" = ", 1) for text in lines if " = " in text) if entry.title else {}
        for lines in (entry.removed, entry.added)
    )
    for name in dict.fromkeys((*old, *new)):
        yield f"{name}: {old.get(name, 'not set')} → {new.get(name, 'not set')}"
