"""Publishes a model and its file of external data as one: a single rename(2) decides which of two models is there.

A model and its NAME.onnx.data are two files, and rename(2) replaces one. If the name NAME.onnx.data is free, the data takes it
first, and the rename of the model decides. If the old model's data has the name, a save takes three steps:

1. The new data takes a hidden name, `.NAME.onnx.data.1` or `.2`.
2. The new model, which refers to its data by that name, takes NAME.onnx: this rename decides.
3. The save removes the old data, and a copy of the new data takes the name NAME.onnx.data. A model that refers to this name
   replaces the other. Then the save removes the hidden name.

Step 3 makes a copy, not a second hard link, since onnx.load refuses data with two links, and a save may be killed here. File
systems that can do so copy by sharing blocks.

If a step before the decision fails, the save undoes it, and the old model is there with its data. If a step after it fails, the
complete new model is there. Its data then has a hidden name, or the old data is beside it, and the save adds a remark. SIGINT
and SIGTERM wait until all is done. A mark, `.NAME.onnx.data.owned`, says which data files saves wrote. So the next save of the
model removes the files that a killed save left. Files are moved with rename(2) and their folder synchronised with fsync(2), see
`atomic_file`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

from onnx_migrate.errors import LoadError, SaveError
from onnx_migrate.files.atomic_file import NewFile, remove_leftovers
from onnx_migrate.files.reading import from_file
from onnx_migrate.messages import remark
from onnx_migrate.model.payloads import FilePayload, FileStamp, file_stamp
from onnx_migrate.model.tensors import tensors
from onnx_migrate.model.weights import Weights, location_of
from onnx_migrate.process.signals import STOPS, blocked
from onnx_migrate.safe_open.paths import exists, listed
from onnx_migrate.url import same_place

__all__ = ["ExternalDataSwap", "hidden_names"]


def hidden_names(target: Path) -> tuple[str, str]:
    """Return the hidden names that the data of the model at `target` may have during a save."""
    return f".{target.name}.data.1", f".{target.name}.data.2"


class ExternalDataSwap:
    """Replaces the model at `target` and its data file. Make it under the lock of the folder, or to check in advance.

    `label` is the target's name in messages, `needed` the files that the new model is read from.
    """

    def __init__(self, target: Path, label: str, needed: Iterable[str]) -> None:
        self.target = target
        self.label = label
        self.data = target.with_name(target.name + ".data")
        self.mark = target.with_name(f".{target.name}.data.owned")
        self._hidden = [target.with_name(name) for name in hidden_names(target)]
        self._is_needed = any(same_place(str(self.data), file) for file in needed)
        names = (self.data, *self._hidden)
        self._locations = _locations(target, label) if any(map(exists, names)) else frozenset()

    def check_replaceable(self) -> None:
        """Raise SaveError (`would-overwrite`) unless the data file belongs only to the model at the target."""
        if not exists(self.data):
            return
        holds = ""
        if self._is_needed:
            holds = "holds weights of the source model"
        elif not self._is_owned():
            holds = f"does not belong to {self.label}"
        elif (other := self._other_reader()) is not None:
            # A model beside it may refer to the same data.
            holds = f"{'holds' if other.certain else 'may hold'} weights of {other} too"
        if holds:
            raise SaveError(
                f"{self.label}: its external data would be written to {self.data}, which exists and {holds}",
                code="would-overwrite",
                hint="move that file away or choose another output path",
            )

    def remove_leftovers(self) -> None:
        """Remove the temporary files that killed saves left, and data at hidden names that no model has."""
        for path in (self.data, self.mark, *self._hidden):
            remove_leftovers(path)
        for path in self._hidden:
            if path.name not in self._locations:
                path.unlink(missing_ok=True)

    def publish(
        self, model: NewFile, data: NewFile | None, model_with_data_at: Callable[[str], NewFile]
    ) -> None:
        """Let the model take the target, and its data, if it has any in a file, the name NAME.onnx.data.

        `model_with_data_at` returns the same model with its data at another name. Raises OSError; then all is as before.
        """
        if data is not None and exists(self.data):
            # The old data must stay until the new model has its name.
            hidden = next(path for path in self._hidden if path.name not in self._locations)
            with model_with_data_at(hidden.name) as first, blocked(*STOPS):
                with self._undone_on_error(data, first) as put:
                    # After a crash, the mark tells the next run which files may be removed.
                    self._write_mark([*_stamps(self.data), data.stamp()])
                    put(hidden)
                    first.put()
                with _as_remark(f"{self.label} is written, but its data stays in {hidden.name}"):
                    # The data gets its usual name after the model has been switched.
                    self._copy_data(hidden, data.stamp(), model)
                    with self._tidying():
                        self._tidy()
            return
        old, doubt = self._replaced_data()
        with blocked(*STOPS):
            with self._undone_on_error(data, model) as put:
                self._write_mark([*_stamps(old), *([data.stamp()] if data is not None else [])])
                put(self.data)
                model.put()
            with self._tidying():
                # Another model may still need the old data.
                if old is not None and not doubt:
                    old.unlink(missing_ok=True)
                self._tidy(keep_mark=bool(doubt))
            if doubt:
                remark(f"{self.label} is written, but {doubt}")

    def _copy_data(self, hidden: Path, stamp: FileStamp, model: NewFile) -> None:
        """Copy data from a hidden name to NAME.onnx.data, and let the model that refers to it there take the target."""
        self.data.unlink(missing_ok=True)  # first, so that there is never room needed for three
        with NewFile(hidden, [FilePayload(hidden, 0, stamp[2], stamp=stamp)]) as copy:
            self._write_mark([stamp, copy.stamp()])
            copy.put(self.data)
            model.put()

    @contextlib.contextmanager
    def _undone_on_error(self, data: NewFile | None, model: NewFile) -> Iterator[Callable[[Path], None]]:
        """Yield a function that puts the data at a name; if the block raises, the data and a new mark are removed again.

        They stay if the model nevertheless has its name, for example after a signal or an error during its rename.
        """
        placed: list[Path] = []

        def put(path: Path) -> None:
            if data is not None:
                placed.append(path)
                data.put(path)

        marked = exists(self.mark)
        try:
            yield put
        except BaseException:
            # The rename may have happened although an error followed it.
            if not model.has_name(self.target):
                for path in (*placed, *([] if marked else [self.mark])):
                    with contextlib.suppress(OSError):
                        path.unlink(missing_ok=True)
            raise

    def _replaced_data(self) -> tuple[Path | None, str]:
        """Return the data file of the old model if no known model needs it afterwards, and why one may need it."""
        if self._is_needed or not exists(self.data) or not self._is_owned():
            return None, ""
        other = self._other_reader()
        if other is None:
            return self.data, ""
        if other.certain:
            return None, ""
        return self.data, f"its old data {self.data.name} is kept, since it may hold weights of {other}"

    def _tidy(self, *, keep_mark: bool = False) -> None:
        """Remove the mark, and data at hidden names unless the new model refers to it."""
        # The mark tells the next run that a swap was interrupted.
        if not keep_mark:
            self.mark.unlink(missing_ok=True)
        hidden_files = [path for path in self._hidden if exists(path)]
        if hidden_files:
            new = _locations(self.target, self.label)
            for path in hidden_files:
                if path.name not in new:
                    path.unlink()

    def _tidying(self) -> contextlib.AbstractContextManager[None]:
        return _as_remark(f"{self.label} is written, but its previous files could not be removed")

    def _is_owned(self) -> bool:
        """Return whether the data file belongs to the model at the target, or was left by a killed save."""
        return self.data.name in self._locations or self._is_marked() or self._is_copy()

    def _is_copy(self) -> bool:
        """Return whether the data file is a copy of the model's data, which still has a hidden name."""
        hidden = [path for path in self._hidden if path.name in self._locations and exists(path)]
        return any(path.stat().st_size == self.data.stat().st_size for path in hidden)

    def _other_reader(self) -> _Reader | None:
        """Return another model of the folder that refers to the data file, or may do so; None if there is none."""
        for path in listed(self.target.parent, "*.onnx"):
            if path.name == self.target.name:
                continue
            try:
                if self.data.name in _locations(path, str(path)):
                    return _Reader(path.name)
            except LoadError as error:
                return _Reader(path.name, error.reason)
        return None

    def _write_mark(self, stamps: Iterable[FileStamp]) -> None:
        """Record which data files saves wrote, in case this one is killed before a model refers to them."""
        lines = [repr(stamp).encode() + b"\n" for stamp in stamps]
        if lines:
            with NewFile(self.mark, lines) as mark:
                mark.put()

    def _is_marked(self) -> bool:
        """Return whether the data file is one that the mark of a killed save describes."""
        try:
            lines = self.mark.read_bytes().splitlines()
            return repr(file_stamp(self.data.stat())).encode() in lines
        except FileNotFoundError:
            return False


@dataclass(frozen=True)
class _Reader:
    """A model that refers to the data file, or one that may do so, with the reason why nobody can tell."""

    name: str
    reason: str = ""

    @property
    def certain(self) -> bool:
        return not self.reason

    def __str__(self) -> str:
        return f"{self.name} ({self.reason})" if self.reason else self.name


def _stamps(path: Path | None) -> list[FileStamp]:
    return [file_stamp(path.stat())] if path is not None else []


def _locations(path: Path, label: str) -> frozenset[str]:
    """Return the files that a model refers to as external data, normalised; none if it is not a model.

    Raises LoadError, code `cannot-read`, if the file is unreadable.
    """
    try:
        proto = from_file(path, label, Weights(path.parent, source=path))
    except LoadError as error:
        if error.code == "cannot-read":
            raise
        return frozenset()
    external = onnx.TensorProto.EXTERNAL
    return frozenset(
        os.path.normpath(location_of(tensor)) for tensor in tensors(proto) if tensor.data_location == external
    )


@contextlib.contextmanager
def _as_remark(text: str) -> Iterator[None]:
    """Turn an error into a remark: the complete new model is there, and its next save tidies up."""
    try:
        yield
    except (OSError, LoadError) as error:
        remark(f"{text}: {error}")
