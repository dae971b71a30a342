"""What a best effort leaves as it is: warnings in the place of refusals."""

from __future__ import annotations

from onnx_migrate.errors import MigrateError
from onnx_migrate.rewrite.change_log import ChangeLog

__all__ = ["leave_or_raise"]


def leave_or_raise(error: MigrateError, log: ChangeLog, pass_name: str, *, best_effort: bool) -> None:
    """Raise a refusal, or note once what is left, code `not-fitted`."""
    if not best_effort:
        raise error
    text = f"left as it is: {error}"
    if not any(note.message == text for note in log.notes):
        subject = error.where.node if error.where else ""
        log.note(pass_name, "not-fitted", text, subject=subject, severity="warning")
