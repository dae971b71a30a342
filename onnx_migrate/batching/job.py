"""One model of a batch, before and after its migration, and the totals of the batch; all values pickle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnx_migrate.json_form import SCHEMA_VERSION, json_of
from onnx_migrate.report.data import ReportData
from onnx_migrate.report.failure import Failure

__all__ = [
    "FAILED",
    "INVALID",
    "MIGRATED",
    "NOT_VERIFIED",
    "REFUSED",
    "STATES",
    "TIMED_OUT",
    "UNCHANGED",
    "UNVERIFIED",
    "VERIFIED",
    "Job",
    "Outcome",
    "Summary",
]

MIGRATED, UNCHANGED, REFUSED, INVALID, FAILED = "migrated", "unchanged", "refused", "invalid", "failed"
"""The possible endings of a job. "invalid": the source is readable, but not a valid ONNX model."""

VERIFIED, UNVERIFIED, NOT_VERIFIED = "verified", "unverified", "not verified"
"""How sure onnx-migrate is of a result; "not verified" means that the caller turned verification off."""

TIMED_OUT = "timed-out"
"""The state of a model that did not end in time, and the code of its error."""

STATES = (MIGRATED, UNCHANGED, UNVERIFIED, TIMED_OUT, REFUSED, INVALID, FAILED)
"""The statuses of a model, best first: its outcome, unless the result is unverified or the model took too long."""


@dataclass(frozen=True)
class Job:
    """A model to migrate: its path, the path of the result (None with --check), and the arguments.

    `arguments` are those of `onnx_migrate.migrate`; `external` and `in_place` are those of `Migration.save`. With `isolated`
    the native stages run in child processes of their own. `spent` is how many seconds of the model's time an earlier attempt
    took. `known` is the journal's record of the output, if there is one. `flags` complete the command line that does the same
    again. `viewed` asks for a report with the view of the result, which a page draws.
    """

    source: str
    output: str | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    external: bool = False
    in_place: bool = False
    isolated: bool = True
    spent: float = 0.0
    known: Mapping[str, Any] | None = None
    flags: tuple[str, ...] = ()
    viewed: bool = False


@dataclass(frozen=True)
class Outcome:
    """How a job ended: "migrated", "unchanged", "refused", "invalid" or "failed".

    `code` and `reason` give the cause of an error. `report` is the report or the failure. It is None if `cached` is true: then
    an earlier run wrote the result already. `record` is the journal's entry. `verification` is "verified", "unverified" or "not
    verified", and "" without a result. `doubt` is the reason why a result is unverified. `late` is true if the time limit ended
    the verification. `remarks` report problems that did not damage the result. `loadable` says that ONNX Runtime loads an
    invalid model. `left` counts the things that a best effort did not change.
    """

    source: str
    output: str | None
    kind: str
    code: str = ""
    reason: str = ""
    seconds: float = 0.0
    cached: bool = False
    report: ReportData | Failure | None = field(default=None, repr=False)
    record: Mapping[str, Any] | None = field(default=None, repr=False)
    verification: str = ""
    doubt: str = ""
    late: bool = False
    remarks: tuple[str, ...] = ()
    loadable: bool = False
    left: int = 0

    @classmethod
    def of(cls, source: str, output: str | None, kind: str, report: ReportData) -> Outcome:
        """Return the outcome of a completed migration."""
        verdict, left_count = report.verification, len(report.left)
        if verdict is None:
            return cls(source, output, kind, report=report, verification=NOT_VERIFIED, left=left_count)
        kind_of_verdict = verdict.kind.value
        late = kind_of_verdict == UNVERIFIED and verdict.timed_out
        doubt = verdict.reason if kind_of_verdict == UNVERIFIED else ""
        return cls(
            source, output, kind, report=report, verification=kind_of_verdict, doubt=doubt, late=late, left=left_count
        )  # fmt: skip

    @property
    def done(self) -> bool:
        """Whether the model was migrated or needed no change."""
        return self.kind in (MIGRATED, UNCHANGED)

    def succeeded(self, *, allow_unverified: bool) -> bool:
        """Whether the model is done and its result is verified, needs no verification, or may be unverified."""
        return self.done and (allow_unverified or self.verification != UNVERIFIED)

    @property
    def state(self) -> str:
        """One of `STATES`: the kind, unless the result is unverified or the time limit ended the work on the model."""
        if self.late or self.code == TIMED_OUT:
            return TIMED_OUT
        if UNVERIFIED in (self.verification, self.code):
            return UNVERIFIED
        return self.kind

    @property
    def why(self) -> str:
        """The reason on one line if the model is not migrated, or its result unverified; "" for a success."""
        return " ".join((self.reason or self.doubt).split())

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json-lines` writes for the model."""
        return {
            "kind": "model",
            "schema_version": SCHEMA_VERSION,
            **(json_of(self.report) if self.report else {}),
            "model": self.source,
            "output": self.output,
            "outcome": self.kind,
            "state": self.state,
            "cached": self.cached,
            "status": self.verification,
            "loadable": self.loadable,
            "left": self.left,
            "total_seconds": round(self.seconds, 3),
        }


@dataclass
class Summary:
    """How a batch ended.

    It counts models by outcome, by outcome and error code, and by state, and results by `verification`. `cached` counts models
    that an earlier run migrated. `loadable` counts invalid models that ONNX Runtime nevertheless loads. `left` counts
    best-effort results that a runtime supports only in part.
    """

    models: int = 0
    ended: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    verification: Counter[str] = field(default_factory=Counter)
    cached: int = 0
    loadable: int = 0
    left: int = 0
    seconds: float = 0.0
    preview: bool = False
    """Whether this was a preview: no results were written, and `migrated` counts the models that would change."""
    complete: bool = False
    """Whether every model was tried: False after an interruption, or a failure with `fail_fast`."""
    allow_unverified: bool = False
    """Whether an unverified result counts as a success."""

    @property
    def done(self) -> bool:
        """Whether every model was migrated or needed no change, and no best effort left a node unchanged."""
        are_done = self.outcomes[MIGRATED] + self.outcomes[UNCHANGED] == self.models
        return self.complete and are_done and not self.left

    @property
    def ok(self) -> bool:
        """Whether all models are done, and no result is unverified unless the caller allows it."""
        return self.done and (self.allow_unverified or not self.verification[UNVERIFIED])

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.ended += 1
        self.outcomes[outcome.kind] += 1
        self.reasons[outcome.kind, outcome.code] += 1
        self.states[outcome.state] += 1
        if outcome.verification:
            self.verification[outcome.verification] += 1
        self.cached += outcome.cached
        self.loadable += outcome.loadable
        self.left += bool(outcome.left)
        # A result without a path was only planned.
        self.preview |= outcome.kind == MIGRATED and outcome.output is None

    @property
    def text(self) -> str:
        """The numbers of migrated models and of verified results, as in "1,021 migrated, 973 verified, 48 unverified"."""
        counts = [(kind, self.outcomes[kind]) for kind in (MIGRATED, UNCHANGED)]
        counts += [(kind, self.verification[kind]) for kind in (VERIFIED, UNVERIFIED, NOT_VERIFIED)]
        counts.append(("invalid although ONNX Runtime loads them", self.loadable))
        counts.append(("not taken in whole (--best-effort)", self.left))
        return ", ".join(f"{count:,} {self.wording(kind)}" for kind, count in counts if count)

    def wording(self, kind: str) -> str:
        """Return the words for an outcome that people read."""
        return "would be migrated" if self.preview and kind == MIGRATED else kind

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json-lines` writes as its last line."""
        kinds = (MIGRATED, UNCHANGED, REFUSED, INVALID, FAILED)
        return {
            "kind": "totals",
            "schema_version": SCHEMA_VERSION,
            "models": self.models,
            "ended": self.ended,
            "preview": self.preview,
            "complete": self.complete,
            "outcomes": {kind: self.outcomes[kind] for kind in kinds},
            "states": {state: self.states[state] for state in STATES},
            "reasons": {code: count for (_, code), count in sorted(self.reasons.items()) if code},
            "verification": {kind: self.verification[kind] for kind in (VERIFIED, UNVERIFIED, NOT_VERIFIED)},
            "cached": self.cached,
            "loadable": self.loadable,
            "left": self.left,
            "seconds": round(self.seconds, 3),
        }
