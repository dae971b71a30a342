"""Payloads of a model's large tensors, by reference: the structure holds no large data.

A tensor whose payload exceeds INLINE_LIMIT carries no data in a `Model`. It is marked EXTERNAL, and its `external_data`
names a location, an offset and a length (onnx.proto, `external_data`). A location is a path relative to
`Weights.folder`, or MEMORY followed by an index into `Weights.memory`. When the weights lie inside the model's own
file, that file is the location, so the structure is itself a valid model with external data.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import TensorProto, numpy_helper

from onnx_migrate.errors import LoadError
from onnx_migrate.messages import count_of
from onnx_migrate.model.payloads import BufferPayload, FilePayload, FileStamp, Payload, byte_size, file_stamp
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.safe_open import Folder, NotRegularError, OutsideError, open_beneath

if TYPE_CHECKING:
    import numpy as np

__all__ = ["INLINE_LIMIT", "MEMORY", "Weights", "clear_data", "location_of", "mark_external"]

INLINE_LIMIT = 4096
"""Payloads of up to this many bytes stay in the structure, so that small constants are available without a file."""

MEMORY = "onnx-migrate:memory:"
"""The prefix of locations in memory."""


@dataclass
class Weights:
    """Finds the payload of a tensor marked EXTERNAL."""

    folder: Path | None = None
    """The folder that locations are relative to; None for a model that was not loaded from a file."""
    memory: list[Payload] = field(default_factory=list)
    source: Path | None = None
    """The model's own file, if it was loaded from one."""
    inside: dict[tuple[int, int], FilePayload] = field(default_factory=dict)
    """The payloads inside `source`, by offset and length."""
    digest: bytes | None = None
    """A hash of the structure as onnx-migrate loaded it; None unless all payloads are inside `source` (see `files.save`)."""
    stamp: FileStamp | None = None
    """The state of the file `source` when onnx-migrate read it."""
    folders: tuple[Folder, ...] = ()
    """The folders that may hold external data: those of `source` and of the file that it links to, opened along with it."""
    may_be_missing: bool = False
    """Whether missing payloads count as absent; this is for a caller that needs only the structure of the model."""
    _stamps: dict[str, FileStamp] = field(default_factory=dict)

    def copy(self) -> Weights:
        """Return the payloads for a second structure; neither gets the payloads that the other adds with `keep`."""
        return replace(self, memory=list(self.memory), inside=dict(self.inside), _stamps=dict(self._stamps))

    def keep(self, tensor: TensorProto, payload: Payload) -> None:
        """Make `tensor` a reference to `payload`, in place, and clear its data fields."""
        clear_data(tensor)
        mark_external(tensor, f"{MEMORY}{len(self.memory)}", 0, payload.length)
        self.memory.append(payload)

    def put(self, tensor: TensorProto, data: bytes) -> None:
        """Give `tensor` this data in place of its own, by reference if it has more than INLINE_LIMIT bytes."""
        if len(data) > INLINE_LIMIT:
            self.keep(tensor, BufferPayload(memoryview(data), len(data)))
        else:
            clear_data(tensor)
            tensor.raw_data = data

    def is_absent(self, tensor: TensorProto) -> bool:
        """Return whether a tensor marked EXTERNAL names a file that is not to be read: without a folder, or missing."""
        location = location_of(tensor)
        if location == "" or location.startswith(MEMORY):
            return False
        return self.folder is None or (self.may_be_missing and not self._is_found(tensor))

    def _is_found(self, tensor: TensorProto) -> bool:
        try:
            self.payload(tensor)
        except LoadError as error:
            return error.code != "missing-data"
        return True

    def files_of(self, tensors: Iterable[TensorProto], *, allow_missing: bool = False) -> list[Path]:
        """Return the files, other than `source`, that hold the data of the tensors marked EXTERNAL, each file once.

        With `allow_missing`, absent tensors are skipped. Raises LoadError as `payload` does.
        """
        data_files: dict[Path, None] = {}
        for tensor in tensors:
            # A tensor without its file is an error only when something reads it.
            if tensor.data_location != TensorProto.EXTERNAL or (allow_missing and self.is_absent(tensor)):
                continue
            payload = self.payload(tensor)
            if isinstance(payload, FilePayload) and payload.path != self.source:
                data_files[payload.path] = None
        return list(data_files)

    def payload(self, tensor: TensorProto) -> Payload:
        """Return the payload of a tensor marked EXTERNAL.

        Raises LoadError with one of these codes:

        - `outside-folder`: the file is not in the model's folder after links are resolved.
        - `missing-data`: the file does not exist or is too short.
        - `bad-external-data`: the offset, length, dims and type do not agree.
        """
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if location.startswith(MEMORY):
            index = location[len(MEMORY) :]
            if not index.isdecimal() or int(index) >= len(self.memory):
                raise LoadError(
                    f"tensor {tensor.name!r} has the location {location!r}, which refers to no data",
                    code="missing-data",
                    hint=f"locations that begin with {MEMORY!r} are reserved: the model was not written by onnx-migrate",
                )
            return self.memory[int(index)]
        if self.folder is None or not location:
            raise LoadError(
                f"tensor {tensor.name!r} is external data without a location"
                if not location
                else f"tensor {tensor.name!r} is stored in {location!r}, but the model was not given as a file,"
                " so the folder of that file is unknown",
                code="missing-data",
                hint="" if self.folder else "give the model's path, or load its external data first",
            )
        offset = _count(tensor, entries, "offset")
        length = _count(tensor, entries, "length")
        if (
            self.source is not None
            and location == self.source.name
            and (offset or 0, length or 0) in self.inside
        ):
            return self.inside[offset or 0, length or 0]
        if location not in self._stamps:
            self._stamps[location] = self._checked(tensor, self.folder, location)
        path, stamped = self.folder / location, self._stamps[location]
        size, offset = stamped[2], offset or 0
        expected = byte_size(tensor.dims, tensor.data_type)
        if length is None:
            # ONNX Runtime reads as many bytes as dims and type need; the rest of the file only for an unknown type.
            length = expected if expected is not None else max(size - offset, 0)
        if expected is not None and length != expected:
            raise LoadError(
                f"tensor {tensor.name!r} has external data of {count_of(length, 'byte')}, but its dims and type need {expected}",
                code="bad-external-data",
            )
        if offset + length > size:
            raise LoadError(
                f"tensor {tensor.name!r} needs bytes {offset} to {offset + length} of {path}, which has {size}",
                code="missing-data",
                hint="the file is truncated, or belongs to another model",
            )
        return FilePayload(path, offset, length, stamp=stamped)

    def _checked(self, tensor: TensorProto, folder: Path, location: str) -> FileStamp:
        """Return the stamp of the file at a location. Raises LoadError as `payload` does.

        A file opened later with the same stamp is the same file, even under another path.
        """
        try:
            if not self.folders:
                self.folders = (Folder.at(folder),)
            fd = open_beneath(self.folders, location)
            try:
                return file_stamp(os.fstat(fd))
            finally:
                os.close(fd)
        except OutsideError as error:
            raise LoadError(
                f"tensor {tensor.name!r} is stored in {location!r}, outside the model's folder {folder}",
                code="outside-folder",
                hint="move the file into that folder and write its location relative to it",
            ) from error
        except NotRegularError as error:
            raise LoadError(
                f"tensor {tensor.name!r} is stored in {folder / location}, which is not a regular file: {error.strerror}",
                code="missing-data",
            ) from error
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise LoadError(
                f"tensor {tensor.name!r} is stored in {location!r}, which cannot be read in {folder}: {reason}",
                code="missing-data",
                hint="put the file with the external data into the folder of the model",
            ) from error

    def require_unchanged(self) -> None:
        """Raise LoadError if a file with weights has changed since onnx-migrate first looked it up."""
        for payload in list(self.inside.values())[:1]:
            payload.open().close()
        for location, stamp in self._stamps.items():
            FilePayload((self.folder or Path()) / location, 0, 0, stamp=stamp).open().close()

    def array(self, tensor: TensorProto) -> np.ndarray[Any, Any]:
        """Return the values of a tensor, EXTERNAL or not, in its own shape and type. Raises LoadError as `payload`."""
        if tensor.data_location != TensorProto.EXTERNAL:
            return numpy_helper.to_array(tensor)
        return numpy_helper.to_array(self.inlined(tensor))

    def inlined(self, tensor: TensorProto) -> TensorProto:
        """Return a copy of an EXTERNAL tensor that holds its data as `raw_data`. Raises LoadError as `payload`."""
        payload = self.payload(tensor)
        copy = TensorProto()
        copy.CopyFrom(tensor)
        clear_data(copy)
        copy.raw_data = payload.read()
        return copy


def _count(tensor: TensorProto, entries: dict[str, str], key: str) -> int | None:
    """Return a non-negative integer entry of a tensor's external_data; None if it is absent or empty."""
    value = entries.get(key, "")
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) <= 19):
        raise LoadError(
            f"tensor {tensor.name!r} has external data whose {key} is {value!r}, not a number of bytes",
            code="bad-external-data",
        )
    return int(value)


def clear_data(tensor: TensorProto) -> None:
    """Remove the data of a tensor, or the reference to it, in place."""
    for name in (*DATA_FIELDS, "external_data", "data_location"):
        tensor.ClearField(name)


def mark_external(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    """Mark `tensor` EXTERNAL and add the entries for `length` bytes of `location` from `offset`, in place."""
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def location_of(tensor: TensorProto) -> str:
    """Return the location that a tensor marked EXTERNAL names, an empty string if it names none."""
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
