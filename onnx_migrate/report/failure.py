"""An error as JSON's types, in the schema of the report, and as an exit code."""

from __future__ import annotations

from typing import Any

from onnx_migrate.errors import InvalidModel, LoadError, MigrateError, UsageError, VerificationFailed
from onnx_migrate.report.partial_report import PartialReport
from onnx_migrate.report.report import SCHEMA_VERSION

__all__ = ["exit_code", "failure"]


_NOTHING: dict[str, Any] = {
    "request": None,
    "before": None,
    "changes": [],
    "notes": [],
    "seconds": {},
    "blocked": None,
}
"""The fields of a partial report for a model that was not loaded."""


def exit_code(error: MigrateError) -> int:
    """Return 4 for a model that cannot be read or is not valid, 3 for numbers that differ, 2 for a wrong argument, else 1."""
    if isinstance(error, LoadError):
        return 4
    if isinstance(error, VerificationFailed):
        return 3
    return 2 if isinstance(error, UsageError) else 1


def _outcome(error: MigrateError) -> str:
    if isinstance(error, InvalidModel):
        return "invalid"
    return "refused" if exit_code(error) in (1, 2) else "failed"


def failure(error: MigrateError, model: str) -> dict[str, Any]:
    """Return an error as JSON's types, with the partial report of what had been done to the model."""
    where = error.where
    failed = error if isinstance(error, VerificationFailed) else None
    verdict, proofs = (failed.verification, failed.proved_in) if failed else (None, ())
    first = failed.first_difference if failed else None
    done = error.partial_report.as_dict() if isinstance(error.partial_report, PartialReport) else _NOTHING
    return {
        "schema_version": SCHEMA_VERSION,
        "model": model,
        "outcome": _outcome(error),
        "error": {
            "code": error.code,
            "kind": type(error).__name__,
            "reason": error.reason,
            "hint": error.hint,
            "scope": where.scope if where else "",
            "node": where.node if where else "",
            "operator": where.operator if where else "",
            "from_version": where.from_version if where else None,
            "to_version": where.to_version if where else None,
        },
        **done,
        "verification": verdict.as_dict() if verdict else None,
        "first_difference": first.as_dict() if first else None,
        "proved_in": [proof.as_dict() for proof in proofs],
    }
