"""Checks that a file to be written is not read or written by the same command, and is of the expected kind."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import combinations, product

__all__ = ["check_path_conflicts", "check_replaceable"]


def check_path_conflicts(written: Iterable[str | None], read: Iterable[str | None] = ()) -> None:
    """Raise UsageError if two of the paths to write, or one of them and one to read, name the same file."""
    from onnx_migrate.errors import UsageError

    new = [name for name in written if name is not None]
    old = [name for name in read if name is not None]
    for one, other in (*combinations(new, 2), *product(new, old)):
        if _same(one, other):
            conflict = f"{one} is given twice" if one == other else f"{one} and {other} are the same file"
            raise UsageError(conflict, hint="give every file that is written a name of its own")


def check_replaceable(path: str, head: bytes, kind: str) -> None:
    """Raise SaveError if a file exists and does not begin with the bytes `head`, as a file of its `kind` does."""
    from onnx_migrate.errors import SaveError, saving

    if not os.path.isfile(path):
        return
    with saving(path), open(path, "rb") as file:
        start = file.read(len(head))
    if start not in (b"", head):
        raise SaveError(
            f"{path} exists and is not {kind}",
            code="would-overwrite",
            hint="choose another name",
        )


def _same(one: str, other: str) -> bool:
    from onnx_migrate.url import identity, resolve_file_url, same_place

    return identity(one) == identity(other) or same_place(resolve_file_url(one), resolve_file_url(other))
