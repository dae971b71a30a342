"""Publishes a model and its file of external data as one: a single rename(2) decides which of two models is there.

A model and its NAME.onnx.data are two files, and rename(2) replaces one. Where NAME.onnx.data is free, the data takes it
first, and the rename of the model decides. Where the old model's data has the name:

1. The new data takes a hidden name, `.NAME.onnx.data.1` or `.2`.
2. The new model, which refers to its data by that name, takes NAME.onnx: this rename decides.
3. The data takes the name NAME.onnx.data too, a model that refers to it by that name replaces the other, and the hidden name is
   removed.

What fails before the decision is undone, and the old model is there with its data. What fails after it leaves the whole new
model, with its data at a hidden name or the old data beside it, and is a warning. A mark, `.NAME.onnx.data.owned`, says which
data files saves wrote, so that the next save of the model removes what a killed one left. Files are moved with rename(2) and
their folder synchronised with fsync(2), see `atomic_file`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import onnx

from onnx_migrate.errors import LoadError, SaveError
from onnx_migrate.files.atomic_file import NewFile, fsync_folder, remove_leftovers
from onnx_migrate.files.load import from_file
from onnx_migrate.model.payloads import FileStamp, file_stamp
from onnx_migrate.model.tensors import location_of, tensors
from onnx_migrate.model.weights import Weights
from onnx_migrate.url import same_place

__all__ = ["ExternalDataSwap"]


class ExternalDataSwap:
    """Replaces the model at `target` and its data file; made under the lock of the folder, or to check in advance.

    `label` is how messages name the target, `needed` the files that the new model is read from.
    """

    def __init__(self, target: Path, label: str, needed: Iterable[str]) -> None:
        self.target = target
        self.label = label
        self.data = target.with_name(target.name + ".data")
        self.mark = target.with_name(f".{target.name}.data.owned")
        self._hidden = [target.with_name(f".{target.name}.data.{number}") for number in (1, 2)]
        self._is_needed = any(same_place(str(self.data), file) for file in needed)
        names = (self.data, *self._hidden)
        self._locations = _locations(target, label) if any(map(_exists, names)) else frozenset()

    def check_replaceable(self) -> None:
        """Raise SaveError (`would-overwrite`) if the data file is not that of the model at the target alone."""
        if not _exists(self.data):
            return
        holds = ""
        if self._is_needed:
            holds = "holds weights of the source model"
        elif not self._is_owned():
            holds = f"does not belong to {self.label}"
        elif (other := self._other_reader()) is not None:
            holds = f"holds weights of {other.name} too"
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
        if data is not None and _exists(self.data):
            hidden = next(path for path in self._hidden if path.name not in self._locations)
            with self._undone_on_error(data) as put, model_with_data_at(hidden.name) as first:
                self._write_mark([*_stamps(self.data), data.stamp()])
                put(hidden)
                first.put()
            with _as_warning(self.label):
                self._rename_data(hidden, model)
                self._tidy()
            return
        old = self._replaced_data()
        with self._undone_on_error(data) as put:
            self._write_mark([*_stamps(old), *([data.stamp()] if data is not None else [])])
            put(self.data)
            model.put()
        with _as_warning(self.label):
            if old is not None:
                old.unlink(missing_ok=True)
            self._tidy()

    def _rename_data(self, hidden: Path, model: NewFile) -> None:
        """Give data at a hidden name the name NAME.onnx.data, and let the model that refers to it there take the target.

        onnx.load refuses data with two hard links, so this is short: the files are written already.
        """
        copy = hidden.with_name(f"{hidden.name}.tmp")
        _link_or_copy(hidden, copy)
        os.replace(copy, self.data)
        fsync_folder(self.target.parent)
        model.put()

    @contextlib.contextmanager
    def _undone_on_error(self, data: NewFile | None) -> Iterator[Callable[[Path], None]]:
        """Yield what puts the data at a name; if the block raises, the data and a new mark are removed again."""
        placed: list[Path] = []

        def put(path: Path) -> None:
            if data is not None:
                placed.append(path)
                data.put(path)

        marked = _exists(self.mark)
        try:
            yield put
        except BaseException:
            for path in (*placed, *([] if marked else [self.mark])):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
            raise

    def _replaced_data(self) -> Path | None:
        """Return the data file of the old model, if nothing needs it afterwards."""
        if self._is_needed or not _exists(self.data) or not self._is_owned() or self._other_reader():
            return None
        return self.data

    def _tidy(self) -> None:
        """Remove the mark, and data at hidden names unless the new model refers to it."""
        self.mark.unlink(missing_ok=True)
        left = [path for path in self._hidden if _exists(path)]
        if left:
            new = _locations(self.target, self.label)
            for path in left:
                if path.name not in new:
                    path.unlink()

    def _is_owned(self) -> bool:
        """Return whether the data file belongs to the model at the target, or was left by a killed save."""
        return self.data.name in self._locations or self._is_marked() or self._is_copy()

    def _is_copy(self) -> bool:
        """Return whether the data file is a copy of the model's data, which has a hidden name still."""
        hidden = [path for path in self._hidden if path.name in self._locations and _exists(path)]
        return any(path.stat().st_size == self.data.stat().st_size for path in hidden)

    def _other_reader(self) -> Path | None:
        """Return another model of the folder that refers to the data file, None if there is none."""
        for path in sorted(self.target.parent.glob("*.onnx")):
            # A model that cannot be read now may still refer to the data.
            with contextlib.suppress(LoadError):
                if path.name == self.target.name or self.data.name not in _locations(path, str(path)):
                    continue
            return path
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


def _exists(path: Path) -> bool:
    """Return whether there is a file; unlike os.path.exists, raise OSError where that cannot be found out."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return False
        raise
    return True


def _stamps(path: Path | None) -> list[FileStamp]:
    return [file_stamp(path.stat())] if path is not None else []


def _locations(path: Path, label: str) -> frozenset[str]:
    """Return the files that a model refers to as external data, normalised; none if it is not a model.

    Raises LoadError, code `cannot-read`, where that cannot be found out.
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
def _as_warning(label: str) -> Iterator[None]:
    """Turn an error into a warning: the new model is in place, whole, and the next save of it tidies up."""
    try:
        yield
    except (OSError, LoadError) as error:
        warnings.warn(
            f"{label} is written, but what was there before could not be tidied up: {error}",
            RuntimeWarning,
            stacklevel=2,
        )


def _link_or_copy(source: Path, target: Path) -> None:
    """Make the content of `source` available at `target` too."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)
