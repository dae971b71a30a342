"""The tables that come with this package, by name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from onnx_migrate.standard.targets.read import parse_table
from onnx_migrate.standard.targets.releases import plain
from onnx_migrate.standard.targets.rows import Bundle, Table

__all__ = ["find", "known_names", "shipped", "spellings", "tables"]


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
