"""Checks that a file to be written is not read or written by the same command."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product

__all__ = ["check_path_conflicts"]


def check_path_conflicts(written: Iterable[str | None], read: Iterable[str | None] = ()) -> None:
    """Raise UsageError if two of the paths to write, or one of them and one to read, name the same file."""
    from onnx_migrate.errors import UsageError

    new = [name for name in written if name is not None]
    old = [name for name in read if name is not None]
    for one, other in (*combinations(new, 2), *product(new, old)):
        if _same(one, other):
            conflict = f"{one} is given twice" if one == other else f"{one} and {other} are the same file"
            raise UsageError(conflict, hint="give every file that is written a name of its own")


def _same(one: str, other: str) -> bool:
    from onnx_migrate.url import identity, resolve_file_url, same_place

    return identity(one) == identity(other) or same_place(resolve_file_url(one), resolve_file_url(other))
