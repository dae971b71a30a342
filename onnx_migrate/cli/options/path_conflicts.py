"""What a command writes is nothing that it reads, nothing else that it writes, and nothing of somebody else's."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import combinations, product

__all__ = ["check_path_conflicts", "check_replaceable"]


def check_path_conflicts(written: Iterable[str | None], read: Iterable[str | None] = ()) -> None:
    """Refuse two names of one file among those to write, or of one to write and one to read. Raises UsageError."""
    from onnx_migrate.errors import UsageError

    new = [name for name in written if name is not None]
    old = [name for name in read if name is not None]
    for one, other in (*combinations(new, 2), *product(new, old)):
        if _same(one, other):
            said = f"{one} is given twice" if one == other else f"{one} and {other} are one file"
            raise UsageError(said, hint="what is written needs a name of its own")


def check_replaceable(path: str, head: bytes, kind: str) -> None:
    """Refuse to write over a file that does not begin as one of its `kind` does. Raises SaveError."""
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
