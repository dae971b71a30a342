"""`-` as a path: the model is read from stdin, the result is written to stdout."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import rich_click as click

from onnx_migrate.cli.standard_streams import OutputFailed, remark_on_failure

if TYPE_CHECKING:
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.files import Beside, Source
    from onnx_migrate.migration import Migration

__all__ = ["STREAM", "error_with_stdin_name", "read_source", "to_stdout", "with_listed", "with_stdin_name"]

STREAM = "-"
_CHUNK = 1 << 20
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
    from onnx_migrate.errors import LoadError
    from onnx_migrate.files.reading.model_stream import read_model

    try:
        return read_model(sys.stdin.buffer.read, _NAME)
    except OSError as error:
        raise LoadError(f"stdin cannot be read: {error.strerror}") from error


def with_listed(sources: Iterable[str]) -> list[str]:
    """Return names of models and folders, with the lines of stdin in place of `-`. Raises click.UsageError."""
    names: list[str] = []
    for source in sources:
        if source != STREAM:
            names.append(source)
            continue
        # A terminal would wait silently for input.
        if sys.stdin is None or sys.stdin.isatty():
            raise click.UsageError(
                "- reads a list of models from stdin; pipe one into it, or name ./- for a file"
            )
        # Paths may hold bytes that are not UTF-8.
        lines = os.fsdecode(sys.stdin.buffer.read()).splitlines()
        names += [line for line in lines if line.strip()]
        if not names:
            raise click.UsageError("stdin lists no models; write one path into each line")
    return names


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


def to_stdout(migration: Migration, beside: Beside) -> None:
    """Write the result to stdout when it is complete, and the files `beside` it are there.

    Raises SaveError over 2 GB, where it would be two files, and OutputFailed where not all bytes could be written.
    """
    from onnx_migrate.errors import saving

    with ExitStack() as stack:
        with saving(tempfile.gettempdir()):
            # Most systems delete a file without a name when the process dies.
            file = stack.enter_context(tempfile.TemporaryFile(prefix="onnx-migrate-", buffering=0))
            migration.write(file)
            size = file.seek(0, os.SEEK_CUR)
            file.seek(0)
        sys.stdout.flush()
        with beside(size):
            pass  # nobody can undo the output to a stream, so these files stay too
        with remark_on_failure("the model on it is incomplete"):
            remaining = size
            # The file may be larger than memory.
            while remaining:
                try:
                    data = file.read(min(remaining, _CHUNK))
                except OSError as error:
                    raise OutputFailed(f"its temporary file cannot be read: {error.strerror}") from error
                if not data:
                    raise OutputFailed("its temporary file was cut")
                sys.stdout.buffer.write(data)
                remaining -= len(data)
            sys.stdout.buffer.flush()
