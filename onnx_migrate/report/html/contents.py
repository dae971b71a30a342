"""Words and figures of a page about a report; the template asks for them, and reads the rest of the report itself.

A fact is a label, a figure, and whether the migration changed it; a note is "info", "warning", "good" or "failed", and a text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from onnx_migrate.messages import count_of, size_text
from onnx_migrate.model.interface import Port, dims_text
from onnx_migrate.report.data import AS_DECLARED, ModelSummary, ReportData
from onnx_migrate.report.diff_nodes import DiffEntry
from onnx_migrate.report.failure import Failure
from onnx_migrate.report.request import with_caps
from onnx_migrate.standard.targets import OperatorKnowledge, Target
from onnx_migrate.verdicts import (
    DynamicProof,
    FeedNote,
    Histogram,
    Kind,
    RuntimeProof,
    Verdict,
)

__all__ = [
    "Row",
    "anchor",
    "axis_text",
    "bars",
    "facts",
    "feed_text",
    "operator_counts",
    "ports",
    "proof_notes",
    "shape_text",
    "size_notes",
    "state_of",
    "target_notes",
    "trial_notes",
    "trials_text",
    "verdict_text",
    "weight_texts",
]

Fact = tuple[str, str, bool]
Note = tuple[str, str]


@dataclass(frozen=True)
class Row:
    """The row of a model in the table of a batch; `reason` says why it was not migrated, or is unverified, and what to do."""

    anchor: str
    model: str
    state: str
    verified: str
    opset: str
    changes: str
    seconds: float
    reason: str

    @classmethod
    def of(
        cls, report: ReportData | Failure | None, model: str, state: str, *, status: str, why: str = "", seconds: float
    ) -> Row:  # fmt: skip
        """Prepare the row of a model: `status` is that of its verification; one without a report was done by an earlier run."""
        sides: tuple[ModelSummary | None, ...] = ()
        changes, reason = "", "; ".join(filter(None, (why, "done by an earlier run")))
        if isinstance(report, ReportData):
            status = status or "not verified"
            sides, changes, reason = (report.before, report.after), f"{_changed_nodes(report):,}", why
        elif report is not None:
            sides, reason = (report.done.before,), f"{report.code}: {report.reason}"
            reason += f" ({report.hint})" if report.hint else ""
        verified = report.verification.kind.value if report is not None and report.verification else status
        opsets = dict.fromkeys(str(side.opset) for side in sides if side)
        return cls(anchor(model), model, state, verified, " → ".join(opsets), changes, seconds, reason)


def _changed_nodes(report: ReportData) -> int:
    """Return the number of changed nodes in the result, or of all changes if the report has no view of the result."""
    return len(report.changes if report.view is None else report.view.changes)


def state_of(report: ReportData | Failure) -> str:
    """Return the status of one model: its outcome, unless the result is unverified or took too long."""
    verdict = report.verification
    if isinstance(report, Failure):
        return "timed-out" if report.code == "timed-out" else report.outcome
    if verdict is None or verdict.kind is not Kind.UNVERIFIED:
        return report.outcome
    return "timed-out" if verdict.timed_out else "unverified"


def anchor(model: str) -> str:
    """Return the HTML id of a model's part in the page of a batch; it depends on the name only."""
    return f"m{hashlib.blake2b(model.encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"


def facts(report: ReportData | Failure) -> Iterator[Fact]:
    """Yield the figures of a model, before and after if there is a result."""
    finished = report.done if isinstance(report, Failure) else report
    before = finished.before
    changed = _changed_nodes(report) if isinstance(report, ReportData) else len(finished.changes)
    result, sizes = (before, None) if isinstance(report, Failure) else (report.after, report.file_bytes)
    if before is not None and result is not None:
        yield _both("opset", before.opset, result.opset)
        imports = dict(result.opset_imports)
        for domain, version in before.opset_imports:
            if domain not in ("", "ai.onnx") and version != imports.get(domain):
                yield _both(domain, version, imports.get(domain, "not imported"))
        yield _both("IR version", before.ir_version, result.ir_version)
        yield _both("nodes", f"{before.nodes:,}", f"{result.nodes:,}")
        yield _both("weights", size_text(before.weight_bytes), size_text(result.weight_bytes))
        if sizes:
            yield _both("file", *map(size_text, sizes))
        if changed:
            yield "changed nodes", f"{changed:,}", False
    if finished.seconds:
        yield "time", f"{sum(finished.seconds.values()):.2f} s", False


def _both(label: str, old: object, new: object) -> Fact:
    return label, f"{old}" if old == new else f"{old} → {new}", old != new


def operator_counts(report: ReportData) -> list[tuple[str, int, int]]:
    """Return each operator whose number of nodes differs, with the number in both models."""
    return [(row.operator, row.before, row.after) for row in report.operators if row.before != row.after]


def ports(before: ModelSummary | None, after: ModelSummary | None) -> list[tuple[str, Port, Port | None]]:
    """Return each input and output with the name "input" or "output" and its counterpart in the result, None without a
    result.
    """
    if before is None:
        return []
    return [
        *(("input", *pair) for pair in zip_longest(before.inputs, after.inputs if after else ())),
        *(("output", *pair) for pair in zip_longest(before.outputs, after.outputs if after else ())),
    ]


def shape_text(dims: Sequence[int | str | None] | None) -> str:
    """Return the shape of a value, as in "[N, 3, ?]"."""
    return "any shape" if dims is None else dims_text(dims)


def verdict_text(verdict: Verdict) -> str:
    """Return how similar the models are, or the reason why nobody knows, and the runtime that ran them."""
    text = verdict.summary.removeprefix(f"{verdict.kind.value}: ")
    statements = () if verdict.verified else map(str, verdict.statements)
    return "; ".join(filter(None, (text, *statements, verdict.setting)))


def feed_text(feed: FeedNote) -> str:
    """Return the name of a set of test inputs, and their shapes."""
    origin = "" if feed.seed is None else f", seed {feed.seed}"
    shapes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in feed.shapes)
    return f"{feed.name}{origin}: {shapes}"


def bars(histogram: Histogram | None) -> list[tuple[int, str]]:
    """Return the bars of a histogram: the height of each in percent, and its label with the number."""
    rows = list(histogram.rows()) if histogram else []
    most = max((number for _, number in rows), default=1)
    return [(-(-number * 100 // most), f"{name}: {number:,}") for name, number in rows]


def axis_text(shown: Sequence[tuple[int, str]]) -> str:
    """Return the label of a histogram's axis, from the first bar to the last."""
    names = [text.rpartition(":")[0] for _, text in shown]
    return f"elements by difference: {' … '.join(dict.fromkeys((names[0], names[-1])))}" if names else ""


def trial_notes(proof: DynamicProof | None) -> list[Note]:
    """Return the runs at other sizes, one by one."""
    if proof is None:
        return []
    messages = []
    for trial in proof.trials:
        sizes = ", ".join(f"{name}={size}" for name, size in trial.sizes)
        messages.append(("failed" if trial.problem else "good", f"{sizes}: {trial.problem or AS_DECLARED}"))
    return messages


def size_notes(proof: DynamicProof) -> list[Note]:
    """Return the results of the runs at other sizes."""
    return [("info", text) for text in proof.notes]


def trials_text(proof: DynamicProof) -> str:
    """Return the number of runs at other sizes, and the number of sizes at which the model cannot run."""
    failed = sum(bool(trial.problem) for trial in proof.trials)
    more = f", {failed} at sizes that do not fit" if failed else ""
    return f"{count_of(len(proof.trials), 'run')}{more}"


def proof_notes(proofs: Iterable[RuntimeProof]) -> list[Note]:
    """Return the runs in other runtimes."""
    return [
        (
            "failed" if not proof.passed else "good" if proof.outcome in ("right", "gained") else "warning",
            ". ".join((f"{proof.runtime}: {proof.text}", *proof.notes)),
        )
        for proof in proofs
    ]


def target_notes(targets: Iterable[Target] | None, operators: Iterable[OperatorKnowledge] = ()) -> list[Note]:
    """Return the opsets that the target runtimes support, and how we know that each supports the result's operators."""
    messages = []
    for target in targets or ():
        measured = "tested by us" if target.measured else "by its documentation, not tested by us"
        source = f" ({target.row.source})" if target.row.source else ""
        messages.append(("info", f"{with_caps(target, str(target))}; {measured}{source}"))
    return [
        *messages,
        *(
            ("warning" if operator_support.unknown else "info", operator_support.sentence)
            for operator_support in operators
        ),
    ]


def weight_texts(entry: DiffEntry) -> tuple[str, str]:
    """Return the type of a weight that differs, or both types, and how it differs: in which elements, or in which model it is."""
    head = f"weight {entry.name}: "
    old, new = ([text.removeprefix(head) for text in lines] for lines in (entry.removed, entry.added))
    if not entry.title:
        return "", " → ".join((*old, *new)) if old and new else (*old, *new)[0]
    kinds = dict.fromkeys(text.partition(" #")[0] for text in (*old, *new))
    return " → ".join(kinds), entry.title.removeprefix(f"weight {entry.name} ")
