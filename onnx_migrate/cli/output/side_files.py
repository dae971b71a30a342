"""Files that a command writes beside the model: checked before the work, and there with the model or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

from onnx_migrate.cli.output.streams import STREAM
from onnx_migrate.safe_open.paths import real_path

__all__ = ["SideFile", "check_path_conflicts", "paths_of", "published"]

_HEAD = 1 << 16
"""How many bytes of a file that exists are read to see of what kind it is."""


@dataclass(frozen=True)
class SideFile:
    """A file that the `option` of a command names, to be replaced only if it is empty or of its own kind.

    `is_own` is given the first bytes of a file and says whether it is of the kind that messages call `kind`.
    """

    option: str
    path: str
    kind: str
    is_own: Callable[[bytes], bool]

    def __post_init__(self) -> None:
        """Raise UsageError for standard output or a URL."""
        from onnx_migrate.errors import UsageError
        from onnx_migrate.url import is_url

        if self.path == STREAM or is_url(self.path):
            destination = "standard output" if self.path == STREAM else "a URL"
            raise UsageError(f"{self.option} needs a file, not {destination}", hint="give the path of a file")

    def check(self) -> Path:
        """Return where the file is written. Raises SaveError where that cannot be, or would lose what is there."""
        from onnx_migrate.errors import SaveError, saving
        from onnx_migrate.files.destination import check_file
        from onnx_migrate.url import resolve_file_url

        path = resolve_file_url(self.path)
        exists = check_file(path, instead=f"{self.option} replaces a file: give the path of one")
        target = Path(real_path(path))
        # Replacing the target through a link would surprise the owner of the other folder.
        if os.path.islink(path) and str(target.parent) != real_path(os.path.dirname(path) or "."):
            raise SaveError(
                f"{self.path} is a link to {target}, which is in another folder", hint=f"give {target} itself"
            )
        if exists:
            with saving(self.path), target.open("rb") as file:
                # The first bytes tell whether an earlier run wrote the file.
                start = file.read(_HEAD)
            if start and not self.is_own(start):
                raise SaveError(
                    f"{self.path} exists and is not {self.kind}",
                    code="would-overwrite",
                    hint="choose another name",
                )
        return target


def published(contents: Mapping[SideFile, Iterable[bytes]]) -> AbstractContextManager[None]:
    """Return a context in which all these files take their names, as in `files.published`. Raises SaveError."""
    from onnx_migrate.files.publishing import NewContent
    from onnx_migrate.files.publishing import published as all_published

    return all_published([NewContent(side.path, side.check, pieces) for side, pieces in contents.items()])


def paths_of(data: Any) -> list[str]:
    """Return the paths that values of --input-data name."""
    if data is None:
        return []
    from onnx_migrate.verify.inputs.given import path_of, texts_of

    return [path for text in texts_of(data) if (path := path_of(text))]


def check_path_conflicts(written: Iterable[str | None], read: Iterable[str | None] = ()) -> None:
    """Raise UsageError if two of the paths to write, or one of them and one to read, name the same file."""
    from onnx_migrate.errors import UsageError

    new = [name for name in written if name is not None]
    old = [name for name in read if name is not None]
    # Two outputs of one name would overwrite each other.
    for path, other in (*combinations(new, 2), *product(new, old)):
        if _same_file(path, other):
            conflict = f"{path} is given twice" if path == other else f"{path} and {other} are the same file"
            raise UsageError(conflict, hint="give every file that is written a name of its own")


def _same_file(one: str, other: str) -> bool:
    from onnx_migrate.url import identity, resolve_file_url, same_place

    return identity(one) == identity(other) or same_place(resolve_file_url(one), resolve_file_url(other))
