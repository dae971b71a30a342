"""The contents of a page, of one model or of a batch, as values that the template only has to place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest

from onnx_migrate.messages import size_text
from onnx_migrate.report.codes import CODES
from onnx_migrate.report.data import AS_DECLARED, ModelSummary, ReportData
from onnx_migrate.report.failure import Failure
from onnx_migrate.report.html.grouping import Group, grouped
from onnx_migrate.report.html.node_diagram import Drawing, draw_blocked
from onnx_migrate.report.html.verification_view import VerificationView, shape_text
from onnx_migrate.report.operator_table import OperatorRow
from onnx_migrate.report.request import tool_versions
from onnx_migrate.standard.targets import Target
from onnx_migrate.verdicts import DynamicProof, RuntimeProof, Trial

__all__ = ["Fact", "ModelPage", "Note", "Port", "Row", "WhyNot", "anchor"]


@dataclass(frozen=True)
class Fact:
    """A figure with its label; `new` if the migration changed it."""

    label: str
    value: str
    new: bool = False


@dataclass(frozen=True)
class Port:
    """An input or output of the model; `after` is "" if there is no result."""

    side: str
    name: str
    kind: str
    before: str
    after: str


@dataclass(frozen=True)
class Note:
    """A note that is not about one changed node; `severity` is "info", "warning", "good" or "failed"."""

    severity: str
    text: str


@dataclass(frozen=True)
class WhyNot:
    """Why a model was not migrated, and a drawing of the node that could not be migrated, if it is known."""

    code: str
    meaning: str
    place: str
    reason: str
    hint: str
    drawing: Drawing | None
    texts: tuple[str, ...]

    @classmethod
    def of(cls, failure: Failure) -> WhyNot:
        """Prepare what a page shows of a failure."""
        drawing, texts = draw_blocked(failure.done.node) if failure.done.node else (None, None)
        where = failure.where
        return cls(
            failure.code,
            CODES.get(failure.code, ""),
            str(where) if where and (where.node or where.operator) else "",
            failure.reason,
            failure.hint,
            drawing,
            tuple(texts.texts) if texts else (),
        )


@dataclass(frozen=True)
class ModelPage:
    """All that a page shows of one model; fields without content are empty or None."""

    name: str
    outcome: str
    output: str = ""
    cached: bool = False
    failure: WhyNot | None = None
    facts: tuple[Fact, ...] = ()
    ports: tuple[Port, ...] = ()
    groups: tuple[Group, ...] = ()
    notes: tuple[Note, ...] = ()
    trials: tuple[Note, ...] = ()
    proved_in: tuple[Note, ...] = ()
    verification: VerificationView | None = None
    seconds: tuple[Fact, ...] = ()
    targets: tuple[Note, ...] = ()
    command: str = ""
    versions: str = ""
    changed_operators: tuple[OperatorRow, ...] = ()
    other_operators: tuple[OperatorRow, ...] = ()

    @classmethod
    def of(cls, report: ReportData | Failure, *, listed: int, output: str | None = None) -> ModelPage:
        """Prepare a report or a failure; at most `listed` nodes are listed for one drawing."""
        done, failure = (report.done, report) if isinstance(report, Failure) else (report, None)
        whole = report if isinstance(report, ReportData) else None
        seconds, before = done.seconds, done.before
        after = whole.after if whole else None
        return cls(
            name=report.model,
            outcome=report.outcome,
            output=output or "" if whole else "",
            failure=WhyNot.of(failure) if failure else None,
            facts=(
                *_facts(before, after, whole.file_bytes if whole else None),
                *([Fact("changed nodes", f"{len(done.changes):,}")] if before else ()),
                *([Fact("time", f"{sum(seconds.values()):.2f} s")] if seconds else ()),
            ),
            ports=_ports(before, after) if before else (),
            groups=grouped(done.changes, listed=listed),
            notes=tuple(Note(item.severity, item.message) for item in done.notes),
            trials=_trials(whole.dynamic) if whole and whole.dynamic else (),
            proved_in=tuple(map(_proved_in, report.proved_in)),
            verification=VerificationView.of(report.verification) if report.verification else None,
            seconds=tuple(Fact(stage, f"{value:.3f} s") for stage, value in seconds.items()),
            targets=tuple(map(_target, report.request.targets or ())) if report.request else (),
            command=_command(report),
            versions=", ".join(f"{name} {number}" for name, number in tool_versions().items() if number)
            if report.request
            else "",
            changed_operators=tuple(row for row in whole.operators if row.changed) if whole else (),
            other_operators=tuple(row for row in whole.operators if not row.changed) if whole else (),
        )


@dataclass(frozen=True)
class Row:
    """The row of a model in the table of a batch; `reason` says why it was not migrated."""

    anchor: str
    model: str
    outcome: str
    verified: str
    opset: str
    changes: str
    seconds: float
    reason: str

    @classmethod
    def of(
        cls, report: ReportData | Failure | None, model: str, outcome: str, *, status: str, seconds: float
    ) -> Row:
        """Prepare the row of a model; one without a report was done by an earlier run, with the `status` of its verification."""
        sides: tuple[ModelSummary | None, ...] = ()
        verified, changes, reason = status, "", "done by an earlier run"
        if report is not None:
            whole = isinstance(report, ReportData)
            sides = (report.before, report.after) if isinstance(report, ReportData) else (report.done.before,)
            changes = f"{len(report.changes):,}" if isinstance(report, ReportData) else ""
            reason = f"{report.code}: {report.reason}" if isinstance(report, Failure) else ""
            verified = (
                report.verification.kind.value
                if report.verification
                else status or ("not verified" if whole else "")
            )
        opsets = dict.fromkeys(str(side.opset) for side in sides if side)
        return cls(anchor(model), model, outcome, verified, " → ".join(opsets), changes, seconds, reason)


def anchor(model: str) -> str:
    """Return the HTML id of a model's part in the page of a batch; it depends on the name only."""
    return f"m{hashlib.blake2b(model.encode('utf-8', 'surrogateescape'), digest_size=6).hexdigest()}"


def _facts(
    before: ModelSummary | None, after: ModelSummary | None, sizes: tuple[int, int] | None
) -> Iterable[Fact]:
    if before is None:
        return
    result = after or before
    yield _both("opset", before.opset, result.opset)
    imports = dict(result.opset_imports)
    for domain, version in before.opset_imports:
        if domain not in ("", "ai.onnx") and version != imports.get(domain):
            yield _both(domain, version, imports.get(domain, "not imported"))
    yield _both("IR version", before.ir_version, result.ir_version)
    yield _both("nodes", f"{before.nodes:,}", f"{result.nodes:,}")
    yield _both("weights", size_text(before.weight_bytes), size_text(result.weight_bytes))
    if sizes:
        yield _both("file", size_text(sizes[0]), size_text(sizes[1]))


def _command(report: ReportData | Failure) -> str:
    """Return the command that does the same again, or the call of the library if none does."""
    if report.request is None:
        return ""
    options = ", ".join(f"{name}={value!r}" for name, value in report.request.options.items())
    return report.command or f"migrate(…{', ' if options else ''}{options})"


def _target(target: Target) -> Note:
    takes = [f"opsets up to {target.opset}"] if target.opset else []
    takes += [f"IR versions up to {target.ir_version}"] if target.ir_version else []
    measured = "measured" if target.measured else "read, not measured"
    source = f" ({target.row.source})" if target.row.source else ""
    return Note("info", f"{target}{': ' if takes else ''}{', '.join(takes)}; {measured}{source}")


def _both(label: str, old: object, new: object) -> Fact:
    return Fact(label, f"{old}" if old == new else f"{old} → {new}", new=old != new)


def _ports(before: ModelSummary, after: ModelSummary | None) -> tuple[Port, ...]:
    pairs = [
        *(("input", *pair) for pair in zip_longest(before.inputs, after.inputs if after else ())),
        *(("output", *pair) for pair in zip_longest(before.outputs, after.outputs if after else ())),
    ]
    return tuple(
        Port(side, old.name, old.kind, shape_text(old.shape), shape_text(new.shape) if new else "")
        for side, old, new in pairs
    )


def _proved_in(proof: RuntimeProof) -> Note:
    grade = "failed" if not proof.passed else "good" if proof.outcome in ("right", "gained") else "warning"
    return Note(grade, ". ".join((f"{proof.runtime}: {proof.text}", *proof.notes)))


def _trials(dynamic: DynamicProof) -> tuple[Note, ...]:
    return (*map(_trial, dynamic.trials), *(Note("info", text) for text in dynamic.notes))


def _trial(trial: Trial) -> Note:
    sizes = ", ".join(f"{name}={size}" for name, size in trial.sizes)
    return Note("failed" if trial.problem else "good", f"{sizes}: {trial.problem or AS_DECLARED}")
