"""Payloads of a model's large tensors, by reference: the structure holds no large data.

A tensor whose payload exceeds INLINE_LIMIT carries no data in a `Model`. It is marked EXTERNAL, and its `external_data`
names a location, an offset and a length (onnx.proto, `external_data`). A location is a path relative to
`Weights.folder`, or MEMORY followed by an index into `Weights.memory`. When the weights lie inside the model's own
file, that file is the location, so the structure is itself a valid model with external data.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import TensorProto, numpy_helper

from onnx_migrate.errors import LoadError
from onnx_migrate.model.payloads import FilePayload, FileStamp, Payload, file_stamp
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.model.tensors import byte_size, location_of, mark_external

if TYPE_CHECKING:
    import numpy as np

__all__ = ["INLINE_LIMIT", "MEMORY", "Weights"]

INLINE_LIMIT = 4096
"""Payloads of up to this many bytes stay in the structure, so that small constants are available without a file."""

MEMORY = "onnx-migrate:memory:"
"""The prefix of locations in memory."""


@dataclass
class Weights:
    """Finds the payload of a tensor marked EXTERNAL.

    `folder` is where locations are relative to and `source` the model's own file, if it came from one;
    `inside` maps (offset, length) to the payloads within that file; `digest` tells whether the structure was
    changed since (see `files.save`), when all the payloads are inside.
    """

    folder: Path | None = None
    memory: list[Payload] = field(default_factory=list)
    source: Path | None = None
    inside: dict[tuple[int, int], FilePayload] = field(default_factory=dict)
    digest: bytes | None = None
    _stamps: dict[str, FileStamp] = field(default_factory=dict)

    def copy(self) -> Weights:
        """Return the same payloads to be found by a second structure; either may `keep` more."""
        return Weights(
            self.folder, list(self.memory), self.source, dict(self.inside), self.digest, dict(self._stamps)
        )

    def keep(self, tensor: TensorProto, payload: Payload) -> None:
        """Make `tensor` a reference to `payload`, in place; its own data fields are cleared."""
        for name in (*DATA_FIELDS, "external_data"):
            tensor.ClearField(name)
        mark_external(tensor, f"{MEMORY}{len(self.memory)}", 0, payload.length)
        self.memory.append(payload)

    def is_absent(self, tensor: TensorProto) -> bool:
        """Tell whether a tensor marked EXTERNAL names a file, and the model came without a folder to find it in."""
        location = location_of(tensor)
        return self.folder is None and location != "" and not location.startswith(MEMORY)

    def payload(self, tensor: TensorProto) -> Payload:
        """Return where the data of a tensor marked EXTERNAL lies.

        Raises LoadError: `outside-folder` if that is not in the model's folder once links are resolved,
        `missing-data` if there is no such file or it is too short, `bad-external-data` if offset, length,
        dims and type do not agree.
        """
        entries = {entry.key: entry.value for entry in tensor.external_data}
        location = entries.get("location", "")
        if location.startswith(MEMORY):
            index = location[len(MEMORY) :]
            if not index.isdecimal() or int(index) >= len(self.memory):
                raise LoadError(
                    f"tensor {tensor.name!r} lies in {location!r}, which is nowhere", code="missing-data"
                )
            return self.memory[int(index)]
        if self.folder is None or not location:
            raise LoadError(
                f"tensor {tensor.name!r} lies in {location or 'an unnamed file'!r}"
                + ("" if self.folder else ", and the model was not given as a file"),
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
            # As ONNX Runtime reads it; "all the rest" only where the type is too new to tell.
            length = expected if expected is not None else max(size - offset, 0)
        if expected is not None and length != expected:
            raise LoadError(
                f"tensor {tensor.name!r}: external length {length}, but dims and type take {expected} bytes",
                code="bad-external-data",
            )
        if offset + length > size:
            raise LoadError(
                f"tensor {tensor.name!r} needs bytes {offset} to {offset + length} of {path}, of {size}",
                code="missing-data",
                hint="the file is truncated, or belongs to another model",
            )
        return FilePayload(path, offset, length, stamp=stamped)

    def _checked(self, tensor: TensorProto, folder: Path, location: str) -> FileStamp:
        """Refuse a location outside the model's folder or without a file; return what the file is now."""
        path = folder / location
        try:
            real = Path(os.path.realpath(path))
            # A model that is itself a link (as in the Hugging Face cache) has a second folder: its real one.
            roots = [Path(os.path.realpath(folder))]
            if self.source is not None:
                roots.append(Path(os.path.realpath(self.source)).parent)
            if os.path.isabs(location) or not any(real.is_relative_to(root) for root in roots):
                raise LoadError(
                    f"tensor {tensor.name!r} lies in {location!r}, outside the model's folder {folder}",
                    code="outside-folder",
                    hint="move the file beside the model and make the location relative",
                )
            status = os.stat(real)
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise LoadError(
                f"tensor {tensor.name!r} lies in {location!r}, not readable in {folder}: {reason}",
                code="missing-data",
                hint="external data belongs beside the model",
            ) from error
        if not stat.S_ISREG(status.st_mode):
            raise LoadError(f"tensor {tensor.name!r} lies in {path}, not a regular file", code="missing-data")
        return file_stamp(status)

    def array(self, tensor: TensorProto) -> np.ndarray[Any, Any]:
        """Return the tensor's values, wherever its payload lies."""
        if tensor.data_location != TensorProto.EXTERNAL:
            return numpy_helper.to_array(tensor)
        return numpy_helper.to_array(self.inlined(tensor))

    def inlined(self, tensor: TensorProto) -> TensorProto:
        """Return a copy of `tensor` that holds its data itself, as `raw_data`."""
        payload = self.payload(tensor)
        copy = TensorProto()
        copy.CopyFrom(tensor)
        for name in (*DATA_FIELDS, "external_data", "data_location"):
            copy.ClearField(name)
        copy.raw_data = payload.read()
        return copy


def _count(tensor: TensorProto, entries: dict[str, str], key: str) -> int | None:
    """Return a non-negative integer entry of a tensor's external_data, None if it is absent or empty."""
    value = entries.get(key, "")
    if not value:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) <= 19):
        raise LoadError(
            f"tensor {tensor.name!r}: external {key} is {value!r}, not a number of bytes",
            code="bad-external-data",
        )
    return int(value)
