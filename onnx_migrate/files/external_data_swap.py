"""The file of external data beside a model that is replaced: moved aside before the swap, removed after it.

rename(2) replaces one file atomically, but a model and its NAME.onnx.data are two. So the order is:

1. The old model is rewritten to refer to its data by a second name, `.NAME.onnx.data.bak` (a hard link).
2. The new data file takes the name NAME.onnx.data. A mark, `.NAME.onnx.data.new`, says that it was written by a save.
3. The new model takes its name. Then the backup and the mark are removed.

Whenever the process is killed, the model at the target is the whole old one or the whole new one. The next save removes
what a killed one left. Files are moved with rename(2) and their folder synchronised with fsync(2), see `atomic_file`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import onnx
from onnx import TensorProto

from onnx_migrate.errors import LoadError, SaveError
from onnx_migrate.files.atomic_file import NewFile, fsync_folder, remove_leftovers
from onnx_migrate.files.load import from_file
from onnx_migrate.files.wire.assemble import assemble
from onnx_migrate.model.payloads import Payload, file_stamp
from onnx_migrate.model.tensors import location_of, tensors
from onnx_migrate.model.weights import Weights
from onnx_migrate.url import same_place

__all__ = ["ExternalDataSwap"]


class ExternalDataSwap:
    """Replaces the data file of the model at `target`, which is about to be replaced itself.

    `label` is how messages name the target, `needed` the files that the new model is read from.
    """

    def __init__(self, target: Path, label: str, needed: Iterable[str]) -> None:
        self.target = target
        self.label = label
        self.data = target.with_name(target.name + ".data")
        self.backup = target.with_name(f".{target.name}.data.bak")
        self.owner_mark = target.with_name(f".{target.name}.data.new")
        self._is_needed = any(same_place(str(self.data), file) for file in needed)
        self._old, self._weights = onnx.ModelProto(), Weights(target.parent, source=target)
        if target.exists() and (self.data.exists() or self.backup.exists()):
            with contextlib.suppress(LoadError):  # not a model: then it refers to no data
                self._old = from_file(target, label, self._weights)
        self._locations = {
            os.path.normpath(location_of(tensor))
            for tensor in tensors(self._old)
            if tensor.data_location == TensorProto.EXTERNAL
        }

    def _is_owned(self) -> bool:
        """Return whether the data file belongs to the model at the target, or was left by a killed save."""
        return len(self._locations & {self.data.name, self.backup.name}) == 1 or self._is_marked()

    def check_replaceable(self) -> None:
        """Raise SaveError (`would-overwrite`) if the data file is needed for the new model or is not known to be owned."""
        if self.data.exists() and (self._is_needed or not self._is_owned()):
            holds = (
                "holds weights of the source model" if self._is_needed else f"does not belong to {self.label}"
            )
            raise SaveError(
                f"{self.label}: its external data would be written to {self.data}, which exists and {holds}",
                code="would-overwrite",
                hint="move that file away or choose another output path",
            )

    def remove_leftovers(self) -> None:
        """Remove the temporary files that killed saves left."""
        remove_leftovers(self.data)
        remove_leftovers(self.owner_mark)

    def move_old_data_aside(self) -> None:
        """Free the data file's name; a model at the target that refers to it refers to the backup afterwards."""
        if self._is_needed or not self.data.exists() or not self._is_owned():
            return
        if self.data.name in self._locations:
            for tensor in tensors(self._old):
                for entry in tensor.external_data:
                    if entry.key == "location" and os.path.normpath(entry.value) == self.data.name:
                        entry.value = self.backup.name
            with NewFile(self.target, assemble(self._old, self._payload_inside)) as repointed:
                # onnx.load refuses data with two hard links, so what follows must be short: the file is written already.
                self.backup.unlink(missing_ok=True)  # left by a killed save; no model refers to it
                _link_or_copy(self.data, self.backup)
                fsync_folder(self.target.parent)
                repointed.put()
        self.data.unlink()
        fsync_folder(self.target.parent)

    def _payload_inside(self, tensor: TensorProto) -> Payload | None:
        """Return the payload of a tensor whose data is in the old model's own file, None for external data."""
        return self._weights.payload(tensor) if location_of(tensor) == self.target.name else None

    def mark_owner(self, new_data: NewFile) -> None:
        """Record that a save wrote the data file, in case it is killed before a model refers to the file."""
        with NewFile(self.owner_mark, [repr(new_data.stamp()).encode()]) as mark:
            mark.put()

    def _is_marked(self) -> bool:
        """Return whether the data file is the one that the mark of a killed save describes."""
        if not (self.owner_mark.exists() and self.data.exists()):
            return False
        return self.owner_mark.read_bytes() == repr(file_stamp(self.data.stat())).encode()

    def finish(self) -> None:
        """Remove the mark, and the backup unless the new model refers to it, as one loaded after a killed save may."""
        self.owner_mark.unlink(missing_ok=True)
        if self.backup.exists():
            new = from_file(self.target, self.label, Weights(self.target.parent, source=self.target))
            if self.backup.name not in {os.path.normpath(location_of(tensor)) for tensor in tensors(new)}:
                self.backup.unlink()


def _link_or_copy(source: Path, target: Path) -> None:
    """Make the content of `source` available at `target` too."""
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)
