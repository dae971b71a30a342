"""Opens a file in a folder by an untrusted location, so that no swap of a link or a folder leads out of the folder.

A path may lead elsewhere when it is opened than when it was checked. So symbolic links are first resolved to a path without
links. This path is opened from the folder's descriptor, component by component, and no component may be a link then (openat(2)
with O_NOFOLLOW). So the opened file is in the folder, even if another process swaps something meanwhile. The call openat2(2)
with RESOLVE_BENEATH would refuse absolute links that stay inside the folder, which are allowed here.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass

from onnx_migrate.safe_open.paths import real_path
from onnx_migrate.safe_open.regular import NotRegularError, open_regular

__all__ = ["Folder", "OutsideError", "open_beneath"]

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0)
"""Flags for opening a folder. With O_PATH the folder need not be readable, just as when opening a file by its path."""

_BY_DESCRIPTOR = os.open in os.supports_dir_fd and hasattr(os, "O_NOFOLLOW")

_SWAPPED = "it is a link that leads to itself, or was replaced while it was opened"


class OutsideError(Exception):
    """A location leads out of the allowed folders."""


@dataclass(frozen=True)
class Folder:
    """A folder by its path, with its identity: device and inode, None if unknown."""

    path: str
    identity: tuple[int, int] | None = None

    @classmethod
    def at(cls, path: str | os.PathLike[str]) -> Folder:
        """Return the folder that is at `path` now. Raises OSError."""
        real = real_path(path)
        status = os.stat(real)
        return cls(real, (status.st_dev, status.st_ino))

    def open_file(self, name: str) -> int:
        """Open the regular file `name` in this folder, or the target of the link `name`. Return its descriptor. Raises
        OSError.
        """
        if not _BY_DESCRIPTOR:
            return open_regular(os.path.join(self.path, name))
        at = self.open()
        try:
            return open_regular(name, dir_fd=at)
        finally:
            os.close(at)

    def open(self) -> int:
        """Return a descriptor of the folder, to open files from. Raises OSError if it is gone or was replaced."""
        fd = os.open(self.path, _FOLDER)
        status = os.fstat(fd)
        if self.identity is not None and (status.st_dev, status.st_ino) != self.identity:
            os.close(fd)
            raise OSError(errno.ESTALE, "its folder was replaced after the model was opened", self.path)
        return fd


def open_beneath(folders: Sequence[Folder], location: str) -> int:
    """Open the regular file at `location`, relative to the first folder, and return its descriptor.

    Symbolic links are followed if their final target is in one of the folders; a hard link is the folder's own file. Raises
    OutsideError, OSError, and ValueError for a NUL in the name.
    """
    if os.path.isabs(location):
        raise OutsideError
    if location.endswith(("/", "/.")):  # resolved, it would be the file before the slash
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), location)
    real = real_path(os.path.join(folders[0].path, location))
    for folder in folders:
        if f"{real}{os.sep}".startswith(f"{folder.path.rstrip(os.sep)}{os.sep}"):
            parts = os.path.relpath(real, folder.path).split(os.sep)
            return _open(folder, parts, real)
    raise OutsideError


def _open(folder: Folder, parts: list[str], real: str) -> int:
    """Open a file, starting at a folder, by the names of its path; no name may be a link."""
    # Not every system opens files relative to a folder.
    if not _BY_DESCRIPTOR:
        return _open_by_path(real)
    at = folder.open()
    try:
        for part in parts[:-1]:
            # A link in the path may lead out of the folder.
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
        return open_regular(parts[-1], dir_fd=at, follow=False)
    except NotRegularError:
        raise
    except OSError as error:
        # The path was checked before, so somebody replaced a part of it.
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise OSError(error.errno, _SWAPPED, real) from error
        raise
    finally:
        os.close(at)


def _open_by_path(real: str) -> int:
    """Open a path without links if the system cannot open from a folder. Raises OSError if a file was swapped meanwhile."""
    fd = open_regular(real)
    opened, there = os.fstat(fd), os.lstat(real)
    same = (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino)
    if not same or real_path(real) != real:
        os.close(fd)
        raise OSError(errno.ELOOP, _SWAPPED, real)
    return fd
