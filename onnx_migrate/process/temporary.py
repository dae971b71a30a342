"""Temporary folders that are removed with their content: when they are no longer used, or, after a kill, by the next run."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
import tempfile
import threading
import time
import weakref
from pathlib import Path

from onnx_migrate.process.signals import STOPS, blocked

__all__ = ["TemporaryFolder", "remove_all", "remove_stale"]

if sys.platform != "win32":
    import fcntl

_NAME = re.compile(r"onnx-migrate-(\d+)-\w{8}")
"""The names of folders: the id of the process, and what makes them unique."""

_ATTEMPTS, _PAUSE = 5, 0.05
"""How often the removal of a folder is tried, and seconds between: a process that was killed in it may end a moment later."""

_LOCK = ".lock"
"""The file in a folder that is locked as long as the folder is in use."""

_NEW = 60.0
"""Seconds after which a folder without that file is not about to get it."""

_live: dict[Path, tuple[int, int | None]] = {}
"""The folders in use, each with the process that made it and the descriptor that holds its lock, None without locks."""

_searched: set[str] = set()
"""Where this process has looked for folders that killed ones left."""


_making = threading.Lock()


def _unlock_in_fork() -> None:
    """Make the lock anew in a forked process, where the thread that may hold it does not run."""
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock_in_fork)


class TemporaryFolder:
    """A new folder, removed with the last reference to this object, at the end of a block, or at the end of the process.

    The first one also removes the folders of earlier processes of this user that have ended without doing so.
    Raises OSError, and leaves no folder, where it or its lock cannot be made.
    """

    def __init__(self) -> None:
        root = tempfile.gettempdir()
        # A thread that searched would take the folder that another one is making, which has no lock yet, for a left one.
        with _making, blocked(*STOPS):  # no folder is made that nothing knows of
            if root not in _searched:
                _searched.add(root)
                remove_stale(Path(root))
            self.path = Path(tempfile.mkdtemp(prefix=f"onnx-migrate-{os.getpid()}-"))
            try:
                _live[self.path] = os.getpid(), _locked(self.path)
            except OSError:
                _remove_tree(self.path)
                raise
            self._remover = weakref.finalize(self, _remove, self.path)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *error: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder now."""
        self._remover()


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
            found = _NAME.fullmatch(entry.name)
            if found is None or Path(entry.path) in _live or _is_alive(int(found[1])):
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
        for _ in range(_ATTEMPTS):
            _remove_tree(path)
            if not os.path.lexists(path):  # Path.exists would raise where that cannot be found out
                break
            time.sleep(_PAUSE)
        del _live[path]
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _remove_tree(path: str | Path) -> None:
    """Remove what can be removed of a folder and its content."""
    with contextlib.suppress(OSError):  # which rmtree raises at some calls in spite of `ignore_errors`
        shutil.rmtree(path, ignore_errors=True)
    # rmtree keeps a folder that it emptied where close(2) reported an error, and stops at the next such one.
    for parent, folders, files in os.walk(path, topdown=False):
        for name in (*files, *folders):
            with contextlib.suppress(OSError):  # a folder that was walked is gone; a link to one is unlinked
                os.unlink(os.path.join(parent, name))
        with contextlib.suppress(OSError):
            os.rmdir(parent)
