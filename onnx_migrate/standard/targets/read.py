"""The tables of runtimes: those of this package, by name, and files of the user, whose form docs/targets.md describes."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib.resources import files

from onnx_migrate.errors import UsageError
from onnx_migrate.safe_open import read_at_most
from onnx_migrate.standard.targets.releases import plain
from onnx_migrate.standard.targets.rows import Bundle, Table
from onnx_migrate.standard.toml_rows import WrongRow, parsed, read_row

__all__ = ["find", "known_names", "parse_table", "read_table", "shipped", "spellings", "tables"]

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


@cache
def known_names() -> tuple[str, ...]:
    """Return the names of the runtimes, sorted."""
    folder = files("onnx_migrate.standard.targets").joinpath("tables")
    return tuple(sorted(item.name[:-5] for item in folder.iterdir() if item.name.endswith(".toml")))


@cache
def shipped(name: str) -> Table:
    """Return the table of a runtime. Raises UsageError if its file is wrong."""
    file = files("onnx_migrate.standard.targets").joinpath("tables", f"{name}.toml")
    return parse_table(file.read_bytes(), f"{name}.toml")


def tables() -> tuple[Table, ...]:
    """Return the tables of all runtimes, sorted by name."""
    return tuple(map(shipped, known_names()))


def find(name: str) -> tuple[Table, Bundle | None] | None:
    """Return the table that a name or an alias stands for, and the product if it is of one; None for an unknown name."""
    wanted = plain(name)
    for known in known_names():
        if plain(known) == wanted:
            return shipped(known), None
    return _others().get(wanted)


@cache
def _others() -> dict[str, tuple[Table, Bundle | None]]:
    found: dict[str, tuple[Table, Bundle | None]] = {}
    for table in tables():
        found |= {plain(alias): (table, None) for alias in (*table.packages, *table.aliases, table.title)}
        for bundle in table.bundles:
            found |= {plain(alias): (table, bundle) for alias in bundle.names}
    return found


@cache
def spellings() -> dict[str, str]:
    """Return all names by which runtimes are known, by how they are compared."""
    found: dict[str, str] = {}
    for table in tables():
        products = [name for bundle in table.bundles for name in bundle.names]
        found |= {plain(name): name for name in (*products, *table.aliases, table.name)}
    return found
