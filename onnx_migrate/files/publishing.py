"""Writes files beside a model: they appear together with the model, or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from onnx_migrate.errors import SaveError, saving
from onnx_migrate.files.atomic_file import NewFile, remove_leftovers, temporary_name
from onnx_migrate.files.wire.payload_references import Piece
from onnx_migrate.messages import remark
from onnx_migrate.process.signals import STOPS, blocked
from onnx_migrate.safe_open.paths import exists

__all__ = ["NewContent", "published"]


@dataclass(frozen=True)
class NewContent:
    """The planned content of a file. `check` returns its path, or raises SaveError; messages call it `label`."""

    label: str
    check: Callable[[], Path]
    pieces: Iterable[Piece]


@contextmanager
def published(contents: Iterable[NewContent]) -> Iterator[None]:
    """Write files, give them their names when all are complete, and restore the old files if the block raises.

    Raises SaveError; then no file has changed.
    """
    # A NewFile that never gets its name is removed when the stack ends.
    with ExitStack() as files:
        written = []
        for content in contents:
            target = content.check()
            with saving(content.label):
                remove_leftovers(target)
                written.append((content.label, files.enter_context(NewFile(target, content.pieces))))
        replaced: list[_Replaced] = []
        try:
            # A signal between two renames would leave the new model beside the old weights.
            with blocked(*STOPS):
                for path, new in written:
                    with saving(path):
                        replaced.append(_Replaced(path, new.target))
                        new.put()
            yield
        except BaseException as error:
            with blocked(*STOPS):
                _put_back(replaced, error)
            raise
        with blocked(*STOPS):
            for old in replaced:
                old.drop()


class _Replaced:
    """The old file at `target`, kept under a hidden name until the new file is there for certain."""

    def __init__(self, path: str, target: Path) -> None:
        self.path = path
        self._target = target
        self._kept: Path | None = None
        self._lock: int | None = None
        if exists(target):
            # Another process must not replace the file meanwhile.
            self._lock = _locked(target)
            self._kept = temporary_name(target)
            try:
                _link_or_copy(target, self._kept)
            except OSError:
                # The lock must not outlive the failure.
                self.drop()
                raise

    def put_back(self) -> None:
        """Restore the old file at the target. Raises OSError."""
        if self._kept is None:
            self._target.unlink(missing_ok=True)
        elif not _is_same(self._kept, self._target):
            try:
                os.replace(self._kept, self._target)
            except OSError:  # nothing can be renamed any more: the old content is written over the new
                shutil.copyfile(self._kept, self._target)
        self.drop()

    def drop(self) -> None:
        """Remove the old file under its hidden name; if that fails, the next write of the target removes it."""
        if self._kept is not None:
            try:
                self._kept.unlink(missing_ok=True)
            except OSError as error:
                remark(f"{self._kept} could not be removed: {error.strerror or error}")
        if self._lock is not None:
            with suppress(OSError):
                os.close(self._lock)
            self._lock = None


def _is_same(kept: Path, target: Path) -> bool:
    """Return whether the target still has the same file; False also if nobody can tell."""
    try:
        return os.path.samefile(kept, target)
    except OSError:
        return False


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


def _locked(path: Path) -> int | None:
    """Return a descriptor that holds a lock, so that no other process treats a second name of the file as a leftover."""
    if sys.platform == "win32":
        return None
    import fcntl

    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _put_back(replaced: Iterable[_Replaced], error: BaseException) -> None:
    """Restore the old files. If that fails, raises SaveError, which lists the new files that stay."""
    failures = []
    for replaced_file in replaced:
        try:
            replaced_file.put_back()
        except OSError as failure:  # noqa: PERF203
            failures.append(
                f"{replaced_file.path} is written and could not be put back: {failure.strerror or failure}"
            )
    if failures and isinstance(error, Exception):
        raise SaveError("; ".join([str(error), *failures])) from error
