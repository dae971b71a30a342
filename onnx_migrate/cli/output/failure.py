"""The end of a failed command: one line on stderr, with --json an object on stdout, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import rich_click as click

from onnx_migrate.cli.options.config import config_remark
from onnx_migrate.cli.standard_streams import OutputFailed, drop_output
from onnx_migrate.messages import printable

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.verdicts import Verdict

__all__ = ["fail", "line", "print_remarks", "warn_unverified"]


def fail(error: MigrateError, model: str, *, as_json: bool) -> int:
    """Print an error and return the exit code."""
    from onnx_migrate.errors import UsageError
    from onnx_migrate.json_form import json_of
    from onnx_migrate.report.failure import Failure, exit_code

    if as_json:
        try:
            click.echo(json.dumps(json_of(Failure.of(model, error)), indent=2))
        except OutputFailed:
            drop_output()  # the line on stderr and the exit code say it all
    remark = config_remark() if isinstance(error, UsageError) else ""
    click.echo(line(error.code, model, f"{error.with_hint}{remark}"), err=True)
    return exit_code(error)


def line(code: str, model: str, message: str) -> str:
    """Return the line of a model that failed, "onnx-migrate: CODE: MODEL: message", without line breaks."""
    model = printable(" ".join(model.split()))
    text = message if message.startswith(model) else f"{model}: {message}"
    return printable(" ".join(f"onnx-migrate: {code}: {text}".split()))


def warn_unverified(verification: Verdict | None, model: str, kept: str = "") -> None:
    """Print one line on stderr if a result could not be compared with its original, and the part that was `kept`."""
    if verification is not None and verification.kind.value == "unverified":
        reason = "; ".join(filter(None, (verification.reason, kept)))
        click.echo(line("unverified", model, reason), err=True)


def print_remarks(remarks: Iterable[str], model: str) -> None:
    """Print what went wrong beside a result that is whole, one line each on stderr."""
    for text in remarks:
        click.echo(line(code="untidy", model=model, message=text), err=True)
