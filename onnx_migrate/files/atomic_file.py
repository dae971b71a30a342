"""Replaces a file atomically: at any moment the name leads to the complete old or the complete new content.

The new content goes to a temporary file in the same folder. It reaches the disk (fsync(2)) before the file takes the name.
The reason is that rename(2) is atomic, but does not say when the content is on the disk. Then the folder is synchronised,
since the fsync(2) of a file does not write the name that the file has in its folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType

from onnx_migrate.files.byte_copy import write_pieces
from onnx_migrate.files.wire.payload_references import Piece
from onnx_migrate.messages import remark
from onnx_migrate.model.payloads import FileStamp, file_stamp
from onnx_migrate.process.signals import STOPS, blocked

__all__ = ["NewFile", "folder_lock", "fsync_folder", "remove_leftovers", "temporary_name"]

if sys.platform != "win32":  # where an open file cannot be removed, so that no lock is needed to protect it
    import fcntl

_numbers = itertools.count()  # one process may write several files for one name at the same time


def _prefix(target: Path) -> str:
    """Return the first part of the names of `target`'s temporary files; file systems allow names of 255 bytes."""
    name = os.fsencode(target.name)
    return f".{target.name}." if len(name) <= 200 else f".{hashlib.sha256(name).hexdigest()}."


def temporary_name(target: Path) -> Path:
    """Return a hidden name beside `target` for this process; `remove_leftovers` removes the file if nobody locks it."""
    return target.with_name(f"{_prefix(target)}{os.getpid()}-{next(_numbers)}.tmp")


class NewFile:
    """A complete file that has not yet taken the name `target`.

    On Linux the file has no name until `put` (O_TMPFILE, see open(2)). A killed process leaves a temporary file only between
    `link` and `rename`. On other systems the file is `.{name}.{pid}-{n}.tmp` in the target's folder, with the hash of a long
    name, and any exception removes it. `remove_leftovers` removes the files of killed processes.
    """

    def __init__(self, target: Path, pieces: Iterable[Piece]) -> None:
        """Write `pieces` and wait until they are on the disk. Raises OSError, and LoadError for the file of a payload."""
        self.target = target
        self._named = False
        self._temporary = temporary_name(target)
        self._fd = -1
        try:
            with blocked(*STOPS):  # a signal does not come between the making of a file and `discard`
                self._fd = self._open()
            if sys.platform != "win32":
                with contextlib.suppress(
                    OSError
                ):  # a file system without locks: leftovers are not removed there
                    fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                mode = stat.S_IMODE(target.stat().st_mode)
                if sys.platform != "win32":
                    os.fchmod(self._fd, mode)
            write_pieces(self._fd, pieces)
            os.fsync(self._fd)
        except BaseException:
            self.discard()
            raise

    def _open(self) -> int:
        """Return a descriptor of a new, empty file in the target's folder, without a name if the system allows this."""
        if hasattr(os, "O_TMPFILE"):
            with contextlib.suppress(OSError):  # not every file system supports O_TMPFILE
                fd = os.open(self.target.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
                if os.path.exists(f"/proc/self/fd/{fd}"):
                    return fd
                os.close(fd)
        self._named = True
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return os.open(self._temporary, flags, 0o666)

    def stamp(self) -> FileStamp:
        """Return the identity of the file, as `payloads.file_stamp` computes it."""
        return file_stamp(os.fstat(self._fd))

    def put(self, target: Path | None = None) -> None:
        """Give the file the name `target`, or another in its folder, replacing the file of that name.

        Raises OSError if the file does not get the name. If synchronising the folder then fails, `put` only adds a remark: the
        file has the name, but a power failure may lose it.
        """
        if not self._named:
            folder = os.open(self.target.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                self._named = (
                    True  # before the call: after an error or a signal, `discard` removes what there may be
                )
                # dst_dir_fd makes this linkat(2) with AT_SYMLINK_FOLLOW, which is how a file of O_TMPFILE gets a name.
                os.link(f"/proc/self/fd/{self._fd}", self._temporary.name, dst_dir_fd=folder)
            finally:
                with contextlib.suppress(OSError):
                    os.close(folder)
        if sys.platform == "win32":
            os.close(self._fd)  # Windows cannot rename an open file
            self._fd = -1
        self._rename(target or self.target)
        self._named = False
        try:
            fsync_folder(self.target.parent)
        except OSError as error:
            reason = error.strerror or error
            remark(f"{self.target} is written, but its folder could not be synchronised: {reason}")

    def has_name(self, target: Path) -> bool:
        """Return whether the file has the name `target`; True also if nobody can tell."""
        try:
            return self._fd >= 0 and os.path.samestat(os.fstat(self._fd), target.stat())
        except FileNotFoundError:
            return False
        except OSError:
            return True

    def _rename(self, target: Path) -> None:
        """Rename the file to `target`; a network file system may report an error although it renamed the file."""
        try:
            os.replace(self._temporary, target)
        except OSError:
            with contextlib.suppress(OSError):
                if self._fd >= 0 and os.path.samestat(os.fstat(self._fd), target.stat()):
                    return
            raise

    def discard(self) -> None:
        """Close the file, and remove it unless `put` gave it its name."""
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # the content is on the disk already, or not wanted
                os.close(self._fd)
            self._fd = -1
        if self._named:
            self._named = False
            with contextlib.suppress(OSError):  # the next write of the target tries again
                self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


@contextlib.contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Let one process at a time replace files in `folder`, if its file system has locks; readers need no lock."""
    if sys.platform == "win32":
        yield
        return
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)
        with contextlib.suppress(OSError):
            os.close(fd)


def fsync_folder(folder: Path) -> None:
    """Wait until the names in `folder` are on the disk, on platforms where a folder can be opened."""
    if hasattr(os, "O_DIRECTORY"):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def remove_leftovers(target: Path) -> None:
    """Remove temporary files of `target` that killed processes left: no process holds a lock on these."""
    start, end = _prefix(target), ".tmp"
    for name in os.listdir(target.parent):
        if not (
            name.startswith(start)
            and name.endswith(end)
            and name[len(start) : -len(end)].replace("-", "", 1).isdecimal()
        ):
            continue
        path = target.with_name(name)
        with contextlib.suppress(OSError):  # locked, or of another user: it is not removed
            fd = os.open(path, os.O_RDWR)
            try:
                if sys.platform != "win32":
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
            finally:
                os.close(fd)
            if sys.platform == "win32":
                path.unlink()
