"""How two models differ by structure: nodes are matched by their operators and the values they read, not by their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from onnx_migrate import files
from onnx_migrate.model.graphs import bodies
from onnx_migrate.report.diff import diff_entries
from onnx_migrate.report.diff_nodes import DiffEntry
from onnx_migrate.rewrite.operator_counts import operator_counts

__all__ = ["Difference", "DifferenceCount", "diff"]


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
            f"{number} {what}"
            for number, what in ((self.changed, "changed"), (self.removed, "removed"), (self.added, "added"))
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
        return not any(entry.removed or entry.added for entry in self.entries)

    def __str__(self) -> str:
        """Return the summary: a line for each kind of thing that differs."""
        if self.same:
            return "the models are the same but for names and order"
        rows = [(f"{count.kind}s" if count.kind != "model" else "model", str(count)) for count in self.counts]
        if self.operators:
            operators = (f"{name} {before} → {after}" for name, before, after in self.operators)
            rows.append(("operators", ", ".join(operators)))
        width = max(len(label) for label, _ in rows)
        return "\n".join(f"{label:<{width}}  {text}" for label, text in rows)


_KINDS = ("model", "input", "output", "node", "weight", "shape")


def diff(original: files.Source, other: files.Source) -> Difference:
    """Return how two models differ by structure. Nothing runs; use `compare` to compare what they compute.

    Both are paths, URLs, protobufs or onnx_ir models. Nodes are matched by operator, attributes and the values that they read. So
    other names, another order, and a constant in place of an initializer are no differences. Weights are read if they are
    stored at different places. Raises LoadError.
    """
    one, two = files.load(original), files.load(other)
    entries = tuple(diff_entries(one.proto, two.proto, weights=(one.weights, two.weights)))
    before, after = (operator_counts(bodies(model.proto)) for model in (one, two))
    operators = tuple(
        (name, before.get(name, 0), after.get(name, 0))
        for name in sorted({*before, *after})
        if before.get(name, 0) != after.get(name, 0)
    )
    return Difference(one.name, two.name, entries, tuple(_counts(entries)), operators)


def _counts(entries: tuple[DiffEntry, ...]) -> Iterator[DifferenceCount]:
    """Yield how much of each kind differs."""
    found: dict[str, Counter[str]] = {}
    for entry in entries:
        if entry.removed or entry.added:
            text = (*entry.removed, *entry.added)[0]
            words = entry.subject.split(" ")[0], text.split(" ")[0]
            kind = next((word for word in words if word in _KINDS), "model")
            what = "changed" if entry.removed and entry.added else "removed" if entry.removed else "added"
            found.setdefault(kind, Counter())[what] += 1
    for kind in _KINDS:
        if kind in found:
            yield DifferenceCount(kind, *(found[kind][what] for what in ("removed", "added", "changed")))
