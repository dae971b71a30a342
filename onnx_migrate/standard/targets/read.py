"""The tables of runtimes: those of this package, by name, and files of the user, whose form docs/targets.md describes."""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import replace
from functools import cache
from importlib.resources import files

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import did_you_mean
from onnx_migrate.safe_open import read_at_most
from onnx_migrate.standard.targets.names import check_names
from onnx_migrate.standard.targets.releases import key, plain
from onnx_migrate.standard.targets.rows import Bundle, MeasuredRows, ReleaseRow, Table
from onnx_migrate.standard.toml_rows import WrongRow, parsed, read_row

if sys.version_info >= (3, 11):
    from importlib.resources.abc import Traversable
else:
    from importlib.abc import Traversable

__all__ = ["find", "known_names", "parse_table", "read_table", "shipped", "spellings", "tables"]

_MEASURED = ".operators.toml"
"""The end of the name of a file with operator rows that a program measured; it lies beside the table of the same name."""

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
    table = parse_table(data, os.fspath(path))
    try:
        # Parsing checks the form of the rows; this checks that the operators and inputs exist.
        check_names(table, tables())
    except WrongRow as error:
        raise UsageError(str(error), code="bad-target-file", hint=error.hint) from error
    return table


def parse_table(data: bytes, file: str, measured: bytes = b"") -> Table:
    """Return the table in the bytes of a file, with the operator rows in the file of measurements beside it.

    Raises UsageError, code `bad-target-file`.
    """
    digest = hashlib.sha256(data + measured).hexdigest()
    try:
        table = read_row(Table, parsed(data, file), file, file=file, digest=digest)
        beside = f"{file[:-5]}{_MEASURED}"
        more = read_row(MeasuredRows, parsed(measured, beside), beside)
        table = replace(table, operators=table.operators + more.operators)
        return _with_rows_of(table) if table.built_from else table
    except WrongRow as error:
        raise UsageError(str(error), code="bad-target-file", hint=error.hint) from error


def _with_rows_of(table: Table) -> Table:
    """Return a table with the rows of the runtime that its own is built from.

    Rows that we measured on that runtime count as read here, not as measured.
    """
    if table.built_from not in known_names():
        raise WrongRow(
            f"{table.file}: built_from = {table.built_from!r} is no runtime that has a table",
            did_you_mean(table.built_from, known_names()) or "`inspect --for all` lists them",
            placed=True,
        )
    since = table.releases[0].since
    # Other keys would contradict the rows of the runtime.
    if table.releases != (ReleaseRow(since=since),):
        raise WrongRow(
            f"{table.file}: with built_from there is one [[release]], which has the key from and no other",
            "rows on operators and faults may be added",
            placed=True,
        )
    other, first = shipped(table.built_from), key(since)
    return replace(
        table,
        releases=tuple(replace(row, measured=False) for row in other.releases if key(row.since) >= first),
        # We did not measure this runtime, but the one that it is built from.
        operators=table.operators + tuple(replace(row, measured=False) for row in other.operators),
        faults=table.faults + other.faults,
        kernels=table.kernels + other.kernels,
        digest=hashlib.sha256((table.digest + other.digest).encode()).hexdigest(),
    )


@cache
def known_names() -> tuple[str, ...]:
    """Return the names of the runtimes, sorted."""
    names = [entry.name for entry in _folder().iterdir()]
    return tuple(
        # The files with measurements have the same suffix.
        sorted(name[:-5] for name in names if name.endswith(".toml") and not name.endswith(_MEASURED))
    )


@cache
def shipped(name: str) -> Table:
    """Return the table of a runtime. Raises UsageError if its file is wrong."""
    measured = _folder().joinpath(f"{name}{_MEASURED}")
    data = _folder().joinpath(f"{name}.toml").read_bytes()
    return parse_table(data, f"{name}.toml", measured.read_bytes() if measured.is_file() else b"")


def _folder() -> Traversable:
    return files("onnx_migrate.standard.targets").joinpath("tables")


def tables() -> tuple[Table, ...]:
    """Return the tables of all runtimes, sorted by name."""
    return tuple(map(shipped, known_names()))


def find(name: str) -> tuple[Table, Bundle | None] | None:
    """Return the table that a name or an alias stands for, and the product if it is of one; None for an unknown name."""
    wanted = plain(name)
    for runtime_name in known_names():
        if plain(runtime_name) == wanted:
            return shipped(runtime_name), None
    return _others().get(wanted)


@cache
def _others() -> dict[str, tuple[Table, Bundle | None]]:
    tables_by_alias: dict[str, tuple[Table, Bundle | None]] = {}
    for table in tables():
        tables_by_alias |= {
            plain(alias): (table, None) for alias in (*table.packages, *table.aliases, table.title)
        }
        for bundle in table.bundles:
            tables_by_alias |= {plain(alias): (table, bundle) for alias in bundle.names}
    return tables_by_alias


@cache
def spellings() -> dict[str, str]:
    """Return all names of runtimes, keyed by the form in which onnx-migrate compares names."""
    names_by_key: dict[str, str] = {}
    for table in tables():
        products = [name for bundle in table.bundles for name in bundle.names]
        names_by_key |= {plain(name): name for name in (*products, *table.aliases, table.name)}
    return names_by_key
