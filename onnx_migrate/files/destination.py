"""May a file be written where it is asked for? Told before the work is done, and held again when it is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from onnx_migrate.errors import SaveError
from onnx_migrate.files.remote.upload import check_url
from onnx_migrate.url import is_url, plain, same_place

__all__ = ["check_file", "check_target", "check_unread", "refuse_source"]


def check_target(
    path: str | os.PathLike[str], *, source: str | os.PathLike[str] | None = None, in_place: bool = False
) -> None:
    """Refuse a path or URL that cannot or must not be replaced; `source` is where the model is read from.

    Raises SaveError (`no-such-folder`, `is-directory`, `in-place`, `cannot-write`).
    """
    target, origin = plain(os.fspath(path)), None if source is None else plain(os.fspath(source))
    if is_url(target):
        check_url(target, source=origin, in_place=in_place)
    else:
        check_file(target, source=origin, in_place=in_place)


def check_file(
    path: str | os.PathLike[str], *, source: str | os.PathLike[str] | None = None, in_place: bool = False
) -> bool:
    """Return whether a file stands at a path; refuse and raise as `check_target` does."""
    label, target = os.fspath(path), Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise SaveError(f"{label}: there is no folder {target.parent}", code="no-such-folder")
    if not _writable(target.parent, os.W_OK | os.X_OK):
        raise SaveError(f"{label}: the folder {target.parent} is write-protected")
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise SaveError(f"{label} is a directory", code="is-directory", hint="give a file name in it")
    if not stat.S_ISREG(mode):
        raise SaveError(f"{label} is not a regular file")
    if not _writable(target, os.W_OK):
        raise SaveError(f"{label} is write-protected")
    if source is not None and not in_place and same_place(str(target), os.fspath(source)):
        raise SaveError(
            f"{label} is the model itself", code="in-place", hint="--in-place allows to replace it"
        )
    return True


def check_unread(targets: Iterable[str | os.PathLike[str]], origin: Iterable[str]) -> None:
    """Raise SaveError (`would-overwrite`) for a path or URL to write to that leads to a file of `Model.origin`."""
    read = tuple(origin)
    for target in targets:
        name = plain(os.fspath(target))
        if is_url(name) or os.path.exists(name):
            refuse_source(name, read)


def refuse_source(target: str, origin: Iterable[str]) -> None:
    """Refuse a path or URL that leads to one of the files of `Model.origin`. Raises SaveError (`would-overwrite`)."""
    for name in origin:
        if same_place(target, name):
            raise SaveError(
                f"{target} is a file that the model is read from",
                code="would-overwrite",
                hint="choose another name",
            )


def _writable(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)
