"""Temporary folders that are removed with their content: when they are no longer used, or, after a kill, by the next run."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from onnx_migrate.process.signals import STOPS, blocked

__all__ = ["TEMPORARY", "TemporaryFolder", "remove_all", "remove_stale"]

if sys.platform != "win32":
    import fcntl

_NAME = re.compile(r"onnx-migrate-(\d+)-\w{8}")
"""The names of folders: they contain the id of the process, and a unique part."""

_ATTEMPTS, _PAUSE = 5, 0.05
"""How often the removal of a folder is tried, and seconds between: a process that was killed in it may end a moment later."""

_NAMES = 100
"""Maximum number of names to try for a folder."""

_LOCK = ".lock"
"""The file in a folder that stays locked while the folder is in use."""

_NEW = 60.0
"""A folder that still lacks this file after so many seconds will not get it."""

_live: dict[Path, tuple[int, int | None]] = {}
"""The folders in use, each with the process that made it and the descriptor that holds its lock, None without locks."""

_searched: set[str] = set()
"""Folders in which this process has looked for leftovers of killed processes."""

TEMPORARY = ("TMPDIR", "TEMP", "TMP")
"""The environment variables that name the folder for temporary files."""


class TemporaryFolder:
    """A new folder, removed with the last reference to this object, at the end of a block, or at the end of the process.

    The first one also removes folders that ended processes of this user did not remove.
    Raises OSError, and leaves no folder, if it or its lock cannot be made.
    """

    def __init__(self) -> None:
        root = _root()
        if root not in _searched:
            _searched.add(root)
            remove_stale(Path(root))
        with blocked(*STOPS):  # no folder is made that nothing knows of
            self.path = _new_folder(root)
            self._process = os.getpid()
            try:
                _live[self.path] = os.getpid(), _locked(self.path)
            except OSError:
                del _live[self.path]
                _remove_tree(self.path)
                raise
        _remove_at_end()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.remove()

    def __del__(self) -> None:
        # Not `weakref.finalize`, which does nothing in functions that `atexit` calls after its own.
        if hasattr(self, "_process") and not sys.is_finalizing():
            self.remove()

    def remove(self) -> None:
        """Remove the folder now."""
        _remove(self.path)


def _root() -> str:
    """Return the folder for temporary files. Raises OSError if there is no writable one."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        raise OSError(
            errno.EROFS, f"{error.args[-1]}; TMPDIR can name a folder that can be written"
        ) from error


def _new_folder(root: str) -> Path:
    """Make a folder that only this user can read. Raises OSError."""
    for _ in range(_NAMES):
        path = Path(root, f"onnx-migrate-{os.getpid()}-{os.urandom(4).hex()}")
        # A thread that searches knows by this entry that the folder is in use, before its lock is made.
        _live[path] = os.getpid(), None
        try:
            path.mkdir(0o700)
        except FileExistsError:
            del _live[path]
        except BaseException:
            del _live[path]
            raise
        else:
            return path
    raise FileExistsError(errno.EEXIST, "every name for a temporary folder is in use", root)


_registered: set[int] = set()
"""The processes that remove their folders at their end: this one, and those that it was forked from."""


def _remove_at_end() -> None:
    """Let this process remove its folders at its end, also if multiprocessing started it and it ends without `atexit`."""
    if os.getpid() in _registered:
        return
    if not _registered:
        atexit.register(remove_all)
    _registered.add(os.getpid())
    if "multiprocessing.util" in sys.modules:
        from multiprocessing.util import Finalize

        Finalize(None, remove_all, exitpriority=0)


def remove_all() -> None:
    """Remove all folders of this process: nothing may use them any more."""
    for path in list(_live):
        _remove(path)


def remove_stale(root: Path) -> None:
    """Remove the folders in `root` that belong to this user, and to no living process.

    A process holds a lock on its folders, as a process of another container with the same `root` is not seen by its id.
    Without locks, as on Windows, nothing is removed.
    """
    if sys.platform == "win32":
        return
    with contextlib.suppress(OSError), os.scandir(root) as entries:
        for entry in entries:
            folder_name = _NAME.fullmatch(entry.name)
            if folder_name is None or Path(entry.path) in _live or _is_alive(int(folder_name[1])):
                continue
            with contextlib.suppress(OSError):  # of another user, locked, or removed by another process now
                if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                    _remove_unlocked(entry.path)


def _remove_unlocked(path: str) -> None:
    """Remove a folder unless a process holds its lock. Raises OSError."""
    try:
        descriptor = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:  # killed before it was made, or to be made now
        if time.time() - os.lstat(path).st_mtime > _NEW:
            os.rmdir(path)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove_tree(path)
    finally:
        os.close(descriptor)


def _is_alive(process: int) -> bool:
    """Whether there is another process of this id."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds the lock of a folder, which ends with the process.

    It is not a lock on the folder itself, which `files.save` takes.
    """
    if sys.platform == "win32":
        return None
    descriptor = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _remove(path: Path) -> None:
    process, descriptor = _live.get(path, (0, None))
    if (
        process != os.getpid()
    ):  # it is removed; or this is a fork, which has its parent's objects and not its folders
        return
    with blocked(*STOPS):
        if (
            descriptor is not None
        ):  # first: the removal needs a descriptor, and this process may have reached its limit
            with contextlib.suppress(OSError):
                os.close(descriptor)
            _live[path] = process, None
        for _ in range(_ATTEMPTS):
            _remove_tree(path)
            if not os.path.lexists(path):  # Path.exists would raise where that cannot be found out
                break
            time.sleep(_PAUSE)
        _live.pop(path, None)  # unless another thread has removed it at the same time


def _remove_tree(path: str | Path) -> None:
    """Remove a folder and its content, as far as possible."""
    with contextlib.suppress(OSError):  # which rmtree raises at some calls in spite of `ignore_errors`
        shutil.rmtree(path, ignore_errors=True)
    # rmtree keeps a folder that it emptied where close(2) reported an error, and stops at the next such one.
    for parent, folders, files in os.walk(path, topdown=False):
        for name in (*files, *folders):
            with contextlib.suppress(OSError):  # a folder that was walked is gone; a link to one is unlinked
                os.unlink(os.path.join(parent, name))
        with contextlib.suppress(OSError):
            os.rmdir(parent)
