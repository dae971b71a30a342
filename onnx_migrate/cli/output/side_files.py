"""Files that a command writes beside the model: checked before the work, and there with the model or not at all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from onnx_migrate.cli.output.streams import STREAM
from onnx_migrate.messages import remark
from onnx_migrate.safe_open.paths import exists, real_path

__all__ = ["SideFile", "check_path_conflicts", "published"]

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
            what = "standard output" if self.path == STREAM else "a URL"
            raise UsageError(f"{self.option} needs a file, not {what}", hint="give the path of a file")

    def check(self) -> Path:
        """Return where the file is written. Raises SaveError where that cannot be, or would lose what is there."""
        from onnx_migrate.errors import SaveError, saving
        from onnx_migrate.files.destination import check_file
        from onnx_migrate.url import resolve_file_url

        path = resolve_file_url(self.path)
        exists = check_file(path, instead=f"{self.option} replaces a file: give the path of one")
        target = Path(real_path(path))
        if os.path.islink(path) and str(target.parent) != real_path(os.path.dirname(path) or "."):
            raise SaveError(
                f"{self.path} is a link to {target}, which is in another folder", hint=f"give {target} itself"
            )
        if exists:
            with saving(self.path), target.open("rb") as file:
                start = file.read(_HEAD)
            if start and not self.is_own(start):
                raise SaveError(
                    f"{self.path} exists and is not {self.kind}",
                    code="would-overwrite",
                    hint="choose another name",
                )
        return target


@contextmanager
def published(contents: Mapping[SideFile, Iterable[bytes]]) -> Iterator[None]:
    """Write files, let all take their names when all are complete, and put back what they replaced if the block raises.

    Raises SaveError; then no file has changed.
    """
    from onnx_migrate.errors import saving
    from onnx_migrate.files.atomic_file import NewFile, remove_leftovers
    from onnx_migrate.process.signals import STOPS, blocked

    with ExitStack() as files:
        written = []
        for side, pieces in contents.items():
            target = side.check()
            with saving(side.path):
                remove_leftovers(target)
                written.append((side.path, files.enter_context(NewFile(target, pieces))))
        replaced: list[_Replaced] = []
        try:
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
            for item in replaced:
                item.drop()


class _Replaced:
    """The file at `target` as it was before, kept under a hidden name until that is known to be over."""

    def __init__(self, path: str, target: Path) -> None:
        from onnx_migrate.files.atomic_file import temporary_name

        self.path = path
        self._target = target
        self._kept: Path | None = None
        self._lock: int | None = None
        if exists(target):
            self._lock = _locked(target)
            self._kept = temporary_name(target)
            try:
                _link_or_copy(target, self._kept)
            except OSError:
                self.drop()
                raise

    def put_back(self) -> None:
        """Make the target as it was. Raises OSError."""
        if self._kept is None:
            self._target.unlink(missing_ok=True)
        elif not _is_same(self._kept, self._target):
            try:
                os.replace(self._kept, self._target)
            except OSError:  # nothing can be renamed any more: the old content is written over the new
                shutil.copyfile(self._kept, self._target)
        self.drop()

    def drop(self) -> None:
        """Remove what was kept; where that fails, the next write of the target does."""
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
    """Return whether the target has not been replaced; also False if that cannot be found out."""
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
    """Return a descriptor that holds a lock, so that no other process takes a second name of the file for a leftover."""
    if sys.platform == "win32":
        return None
    import fcntl

    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _put_back(replaced: Iterable[_Replaced], error: BaseException) -> None:
    """Put files back as they were. Raises SaveError, which says what is written, where that fails."""
    from onnx_migrate.errors import SaveError

    left = []
    for item in replaced:
        try:
            item.put_back()
        except OSError as failure:  # noqa: PERF203
            left.append(f"{item.path} is written and could not be put back: {failure.strerror or failure}")
    if left and isinstance(error, Exception):
        raise SaveError("; ".join([str(error), *left])) from error


def check_path_conflicts(written: Iterable[str | None], read: Iterable[str | None] = ()) -> None:
    """Raise UsageError if two of the paths to write, or one of them and one to read, name the same file."""
    from onnx_migrate.errors import UsageError

    new = [name for name in written if name is not None]
    old = [name for name in read if name is not None]
    for one, other in (*combinations(new, 2), *product(new, old)):
        if _same_file(one, other):
            conflict = f"{one} is given twice" if one == other else f"{one} and {other} are the same file"
            raise UsageError(conflict, hint="give every file that is written a name of its own")


def _same_file(one: str, other: str) -> bool:
    from onnx_migrate.url import identity, resolve_file_url, same_place

    return identity(one) == identity(other) or same_place(resolve_file_url(one), resolve_file_url(other))
