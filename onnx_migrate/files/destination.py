"""Checks of an output path or URL. Commands call them before the work; `save` repeats them before it writes."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from onnx_migrate.errors import SaveError
from onnx_migrate.files.places import IN_PLACE, place_of
from onnx_migrate.safe_open.paths import real_path
from onnx_migrate.url import absolute, is_url, resolve_file_url, same_place

__all__ = [
    "check_file",
    "check_not_source",
    "check_target",
    "open_descriptor",
    "refuse_source",
    "resolve_links",
]

PERMISSION = "change its permissions or choose another output path"
"""The hint for a path without permission to write."""

_INSTEAD = (
    "pipes and devices are not replaced: give a file's path; - is standard output, and --check writes nothing"
)
"""The hint for a path of a model that is not that of a file."""

_MODEL = "the model is"
"""The words of a message for the file that a model is read from."""

_DESCRIPTORS = re.compile(r"/dev/fd|/proc/(\d+|self)(/task/\d+)?/fd")
"""The folders whose entries are the open files of a process."""


def check_target(
    path: str | os.PathLike[str], *, source: str | os.PathLike[str] | None = None, in_place: bool = False
) -> None:
    """Check a path or URL to write to; `source` is the path or URL of the model.

    Raises SaveError (`no-such-folder`, `is-directory`, `in-place`, `cannot-write`).
    """
    target = resolve_file_url(os.fspath(path))
    origin = None if source is None else resolve_file_url(os.fspath(source))
    place = place_of(target)
    if place:
        place.check_target(target, source=origin, in_place=in_place)
    else:
        check_file(target, source=origin, in_place=in_place)


def check_file(
    path: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    in_place: bool = False,
    instead: str = _INSTEAD,
) -> bool:
    """Return whether there is a file at a path. Raises SaveError as `check_target` does.

    `instead` is the hint for a pipe, a device, or anything else that is not a file.
    """
    label, target = os.fspath(path), resolve_links(path)
    # A name with a slash at its end cannot become a file.
    if label.endswith((os.sep, "/")) and not os.path.exists(target):
        raise SaveError(
            f"{label} names a directory", code="is-directory", hint="give the path of a file in it"
        )
    if open_descriptor(label) is not None:
        raise SaveError(f"{label} is what a process has open, not a file to be replaced", hint=instead)
    try:
        folder_exists = stat.S_ISDIR(target.parent.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        folder_exists = False
    except OSError as error:
        raise _unusable(label, error) from error
    if not folder_exists:
        raise SaveError(
            f"{label}: the folder {target.parent} does not exist",
            code="no-such-folder",
            hint="create it first",
        )
    # The new file takes its name by a rename, which needs the folder.
    if not _writable(target.parent, os.W_OK | os.X_OK):
        raise SaveError(f"{label}: no permission to write to the folder {target.parent}", hint=PERMISSION)
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unusable(label, error) from error
    if stat.S_ISDIR(mode):
        raise SaveError(f"{label} is a directory", code="is-directory", hint="give the path of a file in it")
    # A pipe or a device cannot be replaced by a rename.
    if not stat.S_ISREG(mode):
        raise SaveError(f"{label} is not a regular file", hint=instead)
    if not _writable(target, os.W_OK):
        raise SaveError(f"{label}: no permission to write to this file", hint=PERMISSION)
    if source is not None and not in_place and _is_same(str(target), os.fspath(source)):
        raise SaveError(f"{label} is the source model itself", code="in-place", hint=IN_PLACE)
    return True


def resolve_links(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path that a path leads to. Raises SaveError if a link cannot be followed.

    os.path.realpath treats an unreadable link as a file. A save would then replace the link instead of its target.
    """
    target = Path(real_path(absolute(path)))
    try:
        if stat.S_ISLNK(target.lstat().st_mode):
            target.stat()  # the reason, such as links that lead in a circle
            raise OSError(errno.EIO, os.strerror(errno.EIO))
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise _unusable(os.fspath(path), error) from error
    return target


def open_descriptor(path: str | os.PathLike[str]) -> int | None:
    """Return the number of the open file that a path leads to, as /dev/stdout and /dev/fd/63 do; None for other paths.

    The number is -1 if another process has the file open. A save must not replace such a file: the processes that have it open
    would no longer see it.
    """
    try:
        current = os.path.abspath(path)
    except FileNotFoundError:  # a relative path, where somebody has deleted the working folder
        return None
    # Links may form a loop, so the walk has a limit.
    for _ in range(40):  # as many links as Linux follows
        folder, name = os.path.split(current)
        folder = real_path(folder)
        descriptor_folder = _DESCRIPTORS.fullmatch(folder)
        if descriptor_folder is not None and name.isdecimal():
            return int(name) if descriptor_folder[1] in (None, "self", str(os.getpid())) else -1
        try:
            current = os.path.join(folder, os.readlink(os.path.join(folder, name)))
        except (OSError, ValueError):
            return None
    # A path that is no link leads to no descriptor.
    return None


def check_not_source(
    targets: Iterable[str | os.PathLike[str]], origin: Iterable[str], source: str = _MODEL
) -> None:
    """Raise SaveError (`would-overwrite`) if one of the output paths or URLs is a file of `origin` (see `Model.origin`).

    `source` is what the files hold, in the words of the message.
    """
    read = tuple(origin)
    for target in targets:
        name = resolve_file_url(os.fspath(target))
        if is_url(name) or os.path.exists(name):
            refuse_source(name, read, source)


def refuse_source(target: str, origin: Iterable[str], source: str = _MODEL) -> None:
    """Raise SaveError (`would-overwrite`) if a path or URL is one of the files of `origin` (see `Model.origin`)."""
    for name in origin:
        if _is_same(target, name):
            raise SaveError(
                f"{target} is a file that {source} read from",
                code="would-overwrite",
                hint="choose another output path",
            )


def _unusable(label: str, error: OSError) -> SaveError:
    """Return the error for a path that the system cannot look up: its name is too long, or links form a circle."""
    return SaveError(f"{label} cannot be written: {error.strerror}", hint="choose another output path")


def _is_same(target: str, other: str) -> bool:
    """Return the answer of `same_place`. Raises SaveError if the system cannot tell."""
    try:
        return same_place(target, other)
    except OSError as error:
        raise _unusable(target, error) from error


def _writable(path: Path, mode: int) -> bool:
    """Return whether this process, by its effective user where the platform can say, has the access `mode` to a path."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)
