"""How two models differ by structure: nodes are matched by their operators and the values they read, not by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from onnx_migrate import files
from onnx_migrate.cached import cached_property
from onnx_migrate.model.graphs import bodies
from onnx_migrate.model.model import Model
from onnx_migrate.report.diff import BodyDiff, body_diffs
from onnx_migrate.report.diff_nodes import DIFF_KINDS, DiffEntry
from onnx_migrate.report.diff_view import DiffView
from onnx_migrate.rewrite.operator_counts import operator_counts

__all__ = ["Difference", "DifferenceCount", "MatchedModels", "diff"]


@dataclass(frozen=True)
class DifferenceCount:
    """The numbers of things of one kind that are only in the original, only in the other model, or in both but changed."""

    kind: str
    """ "node", "weight", "input", "output", "shape" or "model"."""
    removed: int
    added: int
    changed: int

    def __str__(self) -> str:
        parts = [
            f"{number} {change}"
            for number, change in (
                (self.changed, "changed"),
                (self.removed, "removed"),
                (self.added, "added"),
            )
            if number
        ]
        return ", ".join(parts)


@dataclass(frozen=True)
class Difference:
    """The differences between two models; `entries` are in the order of the original's nodes."""

    original: str
    other: str
    entries: tuple[DiffEntry, ...]
    counts: tuple[DifferenceCount, ...]
    operators: tuple[tuple[str, int, int], ...]
    """Each operator with another number of nodes, with that of both models."""

    @property
    def same(self) -> bool:
        """Whether nothing differs but names, orders and the fields that numbers are stored in."""
        return not any(entry.differs for entry in self.entries)

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """The summary: the label and the text of each kind of thing that differs."""
        if self.same:
            return (("", "the models are the same but for names and order"),)
        rows = [(f"{count.kind}s" if count.kind != "model" else "model", str(count)) for count in self.counts]
        if self.operators:
            operators = (f"{name} {before} → {after}" for name, before, after in self.operators)
            rows.append(("operators", ", ".join(operators)))
        return tuple(rows)

    def __str__(self) -> str:
        """Return the summary: a line for each kind of thing that differs."""
        width = max(len(label) for label, _ in self.summary)
        return "\n".join(f"{label:<{width}}  {text}" if label else text for label, text in self.summary)


def diff(original: files.Source, other: files.Source) -> Difference:
    """Return how two models differ by structure. Nothing runs; use `compare` to compare what they compute.

    Both are paths, URLs, protobufs or onnx_ir models. Nodes are matched by operator, attributes and the values that they read. So
    other names, another order, and a constant in place of an initializer are no differences. Weights are read if they are
    stored at different places. Raises LoadError.
    """
    return MatchedModels.of(original, other).difference


@dataclass(frozen=True)
class MatchedModels:
    """Two models and their differences, body by body."""

    original: Model
    other: Model
    bodies: tuple[BodyDiff, ...]

    @classmethod
    def of(cls, original: files.Source, other: files.Source) -> MatchedModels:
        """Load and match two models. Raises LoadError."""
        first_model, second_model = files.load(original), files.load(other)
        return cls(
            first_model,
            second_model,
            tuple(
                body_diffs(
                    first_model.proto, second_model.proto, weights=(first_model.weights, second_model.weights)
                )
            ),
        )

    @cached_property
    def difference(self) -> Difference:
        """The differences of the models; it does not keep the models themselves."""
        entries = tuple(chain.from_iterable(body.entries for body in self.bodies))
        before, after = (operator_counts(bodies(model.proto)) for model in (self.original, self.other))
        operators = tuple(
            (name, before.get(name, 0), after.get(name, 0))
            for name in sorted({*before, *after})
            if before.get(name, 0) != after.get(name, 0)
        )
        return Difference(self.original.name, self.other.name, entries, tuple(_counts(entries)), operators)

    @property
    def view(self) -> DiffView:
        """The view of the models that a page draws."""
        return DiffView.of(self.original, self.other, self.bodies)


def _counts(entries: tuple[DiffEntry, ...]) -> Iterator[DifferenceCount]:
    """Yield how much of each kind differs."""
    numbers = Counter((entry.kind, entry.change) for entry in entries if entry.differs)
    for kind in DIFF_KINDS:
        counts = [numbers[kind, change] for change in ("removed", "added", "changed")]
        if any(counts):
            yield DifferenceCount(kind, *counts)
