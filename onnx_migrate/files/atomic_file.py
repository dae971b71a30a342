"""A file that appears at its name whole, or not at all."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from onnx_migrate.files.byte_copy import write
from onnx_migrate.files.wire.rebuild import Piece
from onnx_migrate.model.weights import Stamp, stamp

__all__ = ["NewFile", "fsync_folder", "tidy"]

if sys.platform != "win32":  # there an open file cannot be unlinked: no lock is needed to tidy safely
    import fcntl


_numbers = itertools.count()  # two files of one process may be on their way to one name


class NewFile:
    """Bytes on their way to `target`.

    On Linux the file has no name until it is complete, so nothing that ends the process leaves anything
    behind but in the instant between `link` and `rename`; elsewhere it is `.{name}.{pid}-{n}.tmp` in the
    target's folder, removed on any exception. `tidy` clears what a killed process left.
    """

    def __init__(self, target: Path, pieces: Iterable[Piece]) -> None:
        """Write `pieces` and wait for the disk. Raises OSError, or LoadError of a payload's file."""
        self.target = target
        self._named = False
        self._temporary = target.with_name(f".{target.name}.{os.getpid()}-{next(_numbers)}.tmp")
        self._fd = self._open()
        try:
            if sys.platform != "win32":
                with contextlib.suppress(OSError):  # a file system without locks: what is left there stays
                    fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                mode = stat.S_IMODE(target.stat().st_mode)
                if sys.platform != "win32":
                    os.fchmod(self._fd, mode)
            write(self._fd, pieces)
            os.fsync(self._fd)
        except BaseException:
            self.discard()
            raise

    def _open(self) -> int:
        if hasattr(os, "O_TMPFILE"):
            with contextlib.suppress(OSError):  # not every file system has files without a name
                fd = os.open(self.target.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o666)
                if os.path.exists(f"/proc/self/fd/{fd}"):
                    return fd
                os.close(fd)
        self._named = True
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        return os.open(self._temporary, flags, 0o666)

    def stamp(self) -> Stamp:
        """Return what the file is, by the same measure as `weights.stamp`."""
        return stamp(os.fstat(self._fd))

    def put(self) -> None:
        """Let the file stand at `target`, in place of what stood there. Raises OSError."""
        if not self._named:
            folder = os.open(self.target.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                # With a folder's descriptor this is linkat(AT_SYMLINK_FOLLOW): only that links the nameless.
                os.link(f"/proc/self/fd/{self._fd}", self._temporary.name, dst_dir_fd=folder)
            finally:
                os.close(folder)
            self._named = True
        if sys.platform == "win32":
            os.close(self._fd)  # Windows renames no open file
            self._fd = -1
        os.replace(self._temporary, self.target)
        self._named = False
        fsync_folder(self.target.parent)

    def discard(self) -> None:
        """Forget the file if it has not been put in place."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._named:
            self._named = False
            self._temporary.unlink(missing_ok=True)

    def __enter__(self) -> NewFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()


def fsync_folder(folder: Path) -> None:
    """Wait until the names in `folder` are on the disk, where a folder can be opened."""
    if hasattr(os, "O_DIRECTORY"):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def tidy(target: Path) -> None:
    """Remove temporary files of `target` whose writers are gone: those that nobody holds a lock on."""
    start, end = f".{target.name}.", ".tmp"
    for name in os.listdir(target.parent):
        if not (
            name.startswith(start)
            and name.endswith(end)
            and name[len(start) : -len(end)].replace("-", "", 1).isdecimal()
        ):
            continue
        path = target.with_name(name)
        with contextlib.suppress(OSError):  # held, or another's: then it is not ours to remove
            fd = os.open(path, os.O_RDWR)
            try:
                if sys.platform != "win32":
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()
            finally:
                os.close(fd)
            if sys.platform == "win32":
                path.unlink()
