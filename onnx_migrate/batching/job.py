"""One model of a batch, before and after, as values that pickle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onnx_migrate.report.report import SCHEMA_VERSION

__all__ = ["FAILED", "MIGRATED", "REFUSED", "UNCHANGED", "Job", "Outcome", "Summary"]

MIGRATED, UNCHANGED, REFUSED, FAILED = "migrated", "unchanged", "refused", "failed"


@dataclass(frozen=True)
class Job:
    """A model to migrate: where it is, where the result goes (None: it is only looked at), and how.

    `arguments` are those of `onnx_migrate.migrate`. With `isolated` the native stages run in child processes of
    their own, which whoever runs the job must not be one. `known` is what the journal has of it.
    """

    source: str
    output: str | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    external: bool = False
    in_place: bool = False
    isolated: bool = True
    known: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Outcome:
    """How a job ended: "migrated", "unchanged", "refused" or "failed".

    `code` and `reason` say why it was not done. `report` is the report's dict, or the failure's. `cached` says
    that nothing had to be done, because an earlier run did it. `record` is what the journal is to keep.
    """

    source: str
    output: str | None
    kind: str
    code: str = ""
    reason: str = ""
    seconds: float = 0.0
    cached: bool = False
    report: Mapping[str, Any] = field(default_factory=dict, repr=False)
    record: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        return self.kind in (MIGRATED, UNCHANGED)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON line of the model."""
        return {
            "kind": "model",
            "schema_version": SCHEMA_VERSION,
            **self.report,
            "model": self.source,
            "output": self.output,
            "outcome": self.kind,
            "cached": self.cached,
            "total_seconds": round(self.seconds, 3),
        }


@dataclass
class Summary:
    """How a batch ended: models by outcome, by outcome and reason, and those that took no work."""

    models: int = 0
    ended: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)
    cached: int = 0
    seconds: float = 0.0
    complete: bool = False
    """Whether every model was tried: not after an interruption, or a failure with `fail_fast`."""

    @property
    def ok(self) -> bool:
        """Whether every model was migrated or had nothing to be done to it."""
        return self.complete and self.outcomes[MIGRATED] + self.outcomes[UNCHANGED] == self.models

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.ended += 1
        self.outcomes[outcome.kind] += 1
        self.reasons[outcome.kind, outcome.code] += 1
        self.cached += outcome.cached

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON line of the totals."""
        kinds = (MIGRATED, UNCHANGED, REFUSED, FAILED)
        return {
            "kind": "totals",
            "schema_version": SCHEMA_VERSION,
            "models": self.models,
            "ended": self.ended,
            "complete": self.complete,
            "outcomes": {kind: self.outcomes[kind] for kind in kinds},
            "reasons": {code: count for (_, code), count in sorted(self.reasons.items()) if code},
            "cached": self.cached,
            "seconds": round(self.seconds, 3),
        }
