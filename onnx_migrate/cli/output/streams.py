"""`-`: a model from stdin, a result to stdout."""

from __future__ import annotations

import shutil
import sys
import tempfile
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.files import Source
    from onnx_migrate.migration import Migration

__all__ = ["STREAM", "error_with_stdin_name", "read_source", "to_stdout", "with_stdin_name"]

STREAM = "-"
_NAMELESS, _NAME = "<bytes>", "<stdin>"


def read_source(model: str) -> Source:
    """Return the path, of a copy if it is a URL, or all that stdin has; then the model is held in memory."""
    if model != STREAM:
        from onnx_migrate.files import ensure_local

        return ensure_local(model)
    if sys.stdin.isatty():
        raise click.UsageError("stdin is a terminal: pipe a model into it")
    return sys.stdin.buffer.read()


def error_with_stdin_name(error: MigrateError) -> MigrateError:
    """Return an error that calls what came from stdin so."""
    renamed = copy(error)
    renamed.reason = error.reason.replace(_NAMELESS, _NAME)
    return renamed


def with_stdin_name(migration: Migration) -> Migration:
    """Return a migration whose report calls what came from stdin so."""
    if migration.report.model != _NAMELESS:
        return migration
    return replace(migration, report=replace(migration.report, model=_NAME))


def to_stdout(migration: Migration) -> None:
    """Write the result to stdout once it is whole. Raises SaveError; over 2 GB it would not be one file."""
    from onnx_migrate.errors import SaveError

    with tempfile.TemporaryDirectory(prefix="onnx-migrate-") as folder:
        path = Path(folder, "model.onnx")
        migration.save(path)
        if path.with_name("model.onnx.data").exists():
            raise SaveError(
                "stdout takes one file, and the result is more than 2 GB", hint="give OUTPUT a name"
            )
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()
