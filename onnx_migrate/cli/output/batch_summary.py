"""The end of a batch: a table of statuses and reasons, the slowest models, and how to go on; or a row for each model."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from onnx_migrate.batching import Outcome, Summary
from onnx_migrate.batching.job import (
    FAILED,
    INVALID,
    MIGRATED,
    NOT_VERIFIED,
    REFUSED,
    TIMED_OUT,
    UNVERIFIED,
    VERIFIED,
)
from onnx_migrate.messages import count_and_verb, count_of, first_of, listed, printable
from onnx_migrate.report.data import ReportData
from onnx_migrate.report.failure import Failure

__all__ = [
    "FORMATS",
    "Ended",
    "Grouped",
    "csv_text",
    "grouped",
    "markdown_text",
    "next_steps",
    "print_table",
    "slowest",
    "verification_text",
]

FORMATS = ("table", "markdown", "csv")
"""How the end of a batch is printed: counts by status and reason, or a row for each model."""

_COLOURS = {
    MIGRATED: "green",
    UNVERIFIED: "yellow",
    TIMED_OUT: "red",
    REFUSED: "yellow",
    INVALID: "red",
    FAILED: "red",
}

_SLOWEST = 5
"""Models in the list of those that took longest."""

_NAMED = 3
"""Models that a group of equal messages names."""

_HEADER = ("model", "status", "verified", "opset", "nodes changed", "seconds", "reason")

_WIDTH = len("would be migrated")
"""Characters of the column that has the statuses."""

_VARYING = re.compile(r"'[^']*'|\d[\d,.]*")
"""Names and numbers, in which messages of the same kind differ."""


@dataclass(frozen=True)
class Ended:
    """One model at the end of a batch."""

    model: str
    state: str
    code: str
    why: str
    verified: str
    opset: str
    changed: str
    seconds: float

    @classmethod
    def of(cls, outcome: Outcome) -> Ended:
        """Take what the end needs from an outcome, and not its report."""
        report, opset, changed = outcome.report, "", ""
        if isinstance(report, ReportData):
            opset = " → ".join(dict.fromkeys(str(side.opset) for side in (report.before, report.after)))
            changed = str(len(report.changes))
        elif isinstance(report, Failure) and report.done.before is not None:
            opset = str(report.done.before.opset)
        return cls(
            outcome.source, outcome.state, outcome.code, outcome.why, outcome.verification, opset, changed, outcome.seconds
        )  # fmt: skip

    @property
    def reason(self) -> str:
        """The code, unless the status says it, and the message without the model's own name at its beginning."""
        why = self.why.removeprefix(f"{self.model}: ")
        if why.startswith(f"{self.model} "):
            why = f"the model{why.removeprefix(self.model)}"
        return f"{self.code}: {why}" if self.code not in ("", self.state) else why


@dataclass(frozen=True)
class Grouped:
    """Models of one status whose reasons differ in names and numbers only; `reason` is that of the first model."""

    state: str
    reason: str
    models: tuple[str, ...]


def grouped(entries: Iterable[Ended]) -> list[Grouped]:
    """Group models by status and reason: the largest groups of a status first, and each group sorted by name."""
    groups: dict[tuple[str, str], list[Ended]] = {}
    for entry in sorted(entries, key=lambda entry: entry.model):
        # Reasons that differ only in names and numbers form one group.
        key = _VARYING.sub(
            "…", entry.reason.replace(entry.model, "…").replace(os.path.basename(entry.model), "…")
        )
        groups.setdefault((entry.state, key), []).append(entry)
    all_groups = [
        Grouped(state, members[0].reason, tuple(entry.model for entry in members))
        for (state, _), members in groups.items()
    ]
    order = list(dict.fromkeys(("unchanged", *_COLOURS)))
    return sorted(all_groups, key=lambda group: (order.index(group.state), -len(group.models), group.reason))


def print_table(console: Console, summary: Summary, entries: Sequence[Ended], *, running: int) -> None:
    """Print the number of models of each status and reason, and the names of the models with a reason."""
    rows = [(len(group.models), group.state, group) for group in grouped(entries)]
    if summary.models:
        console.print(Text(f"{'models':>6}  {'status':<{_WIDTH}}  reason", style="dim"), soft_wrap=True)
    for count, state, group in rows:
        name = Text(f"{summary.wording(state):<{_WIDTH}}", style=_COLOURS.get(state, ""))
        line = Text.assemble(f"{count:>6}  ", name, f"  {printable(group.reason)}")
        line.rstrip()
        console.print(line, soft_wrap=True)
        if group.reason:
            models = printable(first_of(group.models, _NAMED))
            console.print(Text(f"{'':>{_WIDTH + 10}}{models}", style="dim"), soft_wrap=True)
    for count, text in ((running, "stopped"), (summary.models - summary.ended - running, "not started")):
        if count and not summary.complete:
            console.print(Text.assemble(f"{count:>6}  ", Text(text, style="red")))


def verification_text(summary: Summary) -> str:
    """Return the numbers of results by their verification, as in "results: 57 verified, 2 unverified"."""
    counts = [(summary.verification[kind], kind) for kind in (VERIFIED, UNVERIFIED, NOT_VERIFIED)]
    counts.append((summary.loadable, "invalid although ONNX Runtime loads them"))
    counts.append((summary.left, "not taken in whole (--best-effort)"))
    texts = [f"{count:,} {text}" for count, text in counts if count]
    return f"results: {', '.join(texts)}" if texts else ""


def slowest(entries: Sequence[Ended]) -> str:
    """Return the models that took longest with their seconds, longest first; "" for so few that each has its line anyway."""
    if len(entries) <= _SLOWEST:
        return ""
    first = sorted(entries, key=lambda entry: (-entry.seconds, entry.model))[:_SLOWEST]
    return "slowest: " + ", ".join(f"{printable(entry.model)} {entry.seconds:.1f} s" for entry in first)


def next_steps(summary: Summary, *, out_dir: bool) -> Iterator[str]:
    """Yield the next steps: how to run the remaining models, and how to accept unverified results."""
    late, unfinished = summary.states[TIMED_OUT], summary.models - summary.ended
    failed = summary.ended - summary.outcomes["migrated"] - summary.outcomes["unchanged"]
    again = [
        f"{count_of(count, 'model')} {text}"
        for count, text in (
            (unfinished, "without a result"),
            (late, "timed out"),
            (failed, "refused or failed"),
        )
        if count
    ]
    if again and out_dir:
        more = "; --timeout SECONDS gives each model more time" if late else ""
        yield f"{listed(again)}: the same command with --resume runs only these again{more}"
    unsure = summary.verification[UNVERIFIED]
    if unsure and not summary.allow_unverified:
        yield f"{count_and_verb(unsure, 'result', 'are')} unverified, so the command fails; --allow-unverified accepts them"


def csv_text(entries: Iterable[Ended]) -> str:
    """Return the models as CSV, sorted by name, with a header."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    writer.writerows(_cells(entry) for entry in _sorted(entries))
    return text.getvalue()


def markdown_text(summary: Summary, entries: Iterable[Ended]) -> str:
    """Return the counts and the models, sorted by name, as Markdown."""
    counts = ", ".join(
        f"{count:,} {summary.wording(state)}" for state, count in sorted(summary.states.items())
    )
    lines = [f"**{count_of(summary.models, 'model')}**: {counts or 'none ended'}", ""]
    lines += ["| " + " | ".join(_HEADER) + " |", "|---|---|---|---|--:|--:|---|"]
    lines += ["| " + " | ".join(map(_escaped, _cells(entry))) + " |" for entry in _sorted(entries)]
    return "\n".join(lines) + "\n"


def _sorted(entries: Iterable[Ended]) -> list[Ended]:
    return sorted(entries, key=lambda entry: entry.model)


def _cells(entry: Ended) -> tuple[str, ...]:
    texts = (entry.model, entry.state, entry.verified, entry.opset, entry.changed)
    return (*map(printable, texts), f"{entry.seconds:.2f}", printable(entry.reason))


def _escaped(text: Any) -> str:
    """Return the text of a cell: a bar would end it, and < may begin HTML."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
