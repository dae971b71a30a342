"""`-` as a path: the model is read from stdin, the result is written to stdout."""

from __future__ import annotations

import shutil
import sys
import tempfile
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import rich_click as click

from onnx_migrate.cli.standard_streams import remark_on_failure

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.files import Source
    from onnx_migrate.migration import Migration

__all__ = ["STREAM", "error_with_stdin_name", "read_source", "to_stdout", "with_stdin_name"]

STREAM = "-"
_NAMELESS, _NAME = "<bytes>", "<stdin>"


def read_source(model: str) -> Source:
    """Return the path of the model, of a local copy if it is a URL; for `-` the bytes of stdin, all in memory."""
    if model != STREAM:
        from onnx_migrate.files import ensure_local

        return ensure_local(model)
    if sys.stdin is None:
        raise click.UsageError("stdin is closed; pipe a model into it")
    if sys.stdin.isatty():
        raise click.UsageError("stdin is a terminal; pipe a model into it")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        from onnx_migrate.errors import LoadError

        raise LoadError(f"stdin cannot be read: {error.strerror}") from error


def error_with_stdin_name(error: MigrateError) -> MigrateError:
    """Return an error whose text calls a model without a name <stdin>."""
    renamed = copy(error)
    renamed.reason = error.reason.replace(_NAMELESS, _NAME)
    return renamed


def with_stdin_name(migration: Migration) -> Migration:
    """Return a migration whose report calls a model without a name <stdin>."""
    if migration.report.model != _NAMELESS:
        return migration
    return replace(migration, report=replace(migration.report, model=_NAME))


def to_stdout(migration: Migration) -> None:
    """Write the result to stdout when it is complete.

    Raises SaveError over 2 GB, where it would be two files, and OutputFailed where not all bytes could be written.
    """
    from onnx_migrate.errors import SaveError

    with tempfile.TemporaryDirectory(prefix="onnx-migrate-") as folder:
        path = Path(folder, "model.onnx")
        migration.save(path)
        if path.with_name("model.onnx.data").exists():
            raise SaveError(
                "the result is over 2 GB and needs two files, but stdout takes one",
                hint="name a file as OUTPUT",
            )
        sys.stdout.flush()
        with path.open("rb") as file, remark_on_failure("the model on it is incomplete"):
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
