"""Reads the file of a target; docs/targets.md describes its form."""

from __future__ import annotations

import hashlib
import os

from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open import read_at_most
from onnx_migrate.standard.targets.rows import Table
from onnx_migrate.standard.toml_rows import WrongRow, parsed, read_row

__all__ = ["parse_table", "read_table"]

_LARGEST = 1 << 24
"""The most bytes of the file of a target."""


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read the file of a user's own target. Raises UsageError, code `bad-target-file`, naming file, row and key."""
    try:
        data = read_at_most(path, _LARGEST)
    except OSError as error:
        raise UsageError(
            f"{os.fspath(path)}: {error.strerror}",
            code="bad-target-file",
            hint="give the path of a file as docs/targets.md describes it",
        ) from error
    return parse_table(data, os.fspath(path))


def parse_table(data: bytes, file: str) -> Table:
    """Return the table that the bytes of a file hold. Raises UsageError, code `bad-target-file`."""
    try:
        return read_row(Table, parsed(data, file), file, file=file, digest=hashlib.sha256(data).hexdigest())
    except WrongRow as error:
        raise UsageError(str(error), code="bad-target-file", hint=error.hint) from error
