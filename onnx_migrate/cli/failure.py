"""How a failed command ends: one line on stderr, JSON on stdout if that was asked for, and the exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import rich_click as click

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError

__all__ = ["exit_code", "fail"]


def exit_code(error: MigrateError) -> int:
    """Return 4 for a model that cannot be read, 3 for numbers that differ, 2 for a wrong argument, else 1."""
    from onnx_migrate.errors import LoadError, UsageError, VerificationFailed

    if isinstance(error, LoadError):
        return 4
    if isinstance(error, VerificationFailed):
        return 3
    return 2 if isinstance(error, UsageError) else 1


def fail(error: MigrateError, model: str, *, as_json: bool) -> int:
    """Say what went wrong and return the exit code."""
    if as_json:
        click.echo(json.dumps(failure(error, model), indent=2))
    message = " ".join(str(error).split())
    if not message.startswith(model):
        message = f"{model}: {message}"
    click.echo(f"onnx-migrate: {error.code}: {message}", err=True)
    return exit_code(error)


def failure(error: MigrateError, model: str) -> dict[str, Any]:
    """Return an error as JSON's types, in the schema of the report."""
    from onnx_migrate.report.report import SCHEMA_VERSION

    where = error.where
    return {
        "schema_version": SCHEMA_VERSION,
        "model": model,
        "outcome": "refused" if exit_code(error) in (1, 2) else "failed",
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
    }
