"""The location of a tensor's bytes, and their number: in a file, in a buffer, or in a field of a protobuf."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnx import TensorProto

from onnx_migrate.advice import Advice
from onnx_migrate.errors import LoadError
from onnx_migrate.messages import count_of
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.safe_open import NotRegularError, open_regular

__all__ = [
    "BufferPayload",
    "FilePayload",
    "FileStamp",
    "ObjectPayload",
    "Payload",
    "TensorPayload",
    "byte_size",
    "data_field",
    "file_stamp",
    "has_type",
    "packed_bytes",
    "pieces_of",
]

_TYPES_OF_FIELD: dict[str, tuple[int, ...]] = {
    "float_data": (TensorProto.FLOAT, TensorProto.COMPLEX64),
    "double_data": (TensorProto.DOUBLE, TensorProto.COMPLEX128),
}
"""The element types whose raw data equals the bytes of a packed field (onnx.proto, comments of these fields).

The other packed fields are varints on the wire.
"""

_BITS = dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8) | dict.fromkeys((4, 5, 10, 16), 16)
_BITS |= {
    1: 32,
    6: 32,
    12: 32,
    7: 64,
    11: 64,
    13: 64,
    14: 64,
    15: 128,
    21: 4,
    22: 4,
    23: 4,
    25: 2,
    26: 2,
    27: 6,
    28: 6,
}
"""Bits of one element by TensorProto.DataType (onnx.proto); numbers, since an older onnx lacks the newer names."""

FileStamp = tuple[int, int, int, int]
"""Device, inode, size and modification time (ns): they differ when a file was replaced or changed."""


def file_stamp(status: os.stat_result) -> FileStamp:
    """Return the stamp of a file from the result of `os.stat`."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class FilePayload:
    """`length` bytes of `path` from `offset`, little-endian and dense, like those in `raw_data`.

    Two fields are only for data inside a model, so that it can be written back unchanged. `field` is the TensorProto
    field that held the data. `extra_fields` holds the tensor's original external_data and data_location, serialised.
    """

    path: Path
    offset: int
    length: int
    field: str = "raw_data"
    extra_fields: bytes = b""
    stamp: FileStamp | None = None

    def open(self) -> io.FileIO:
        """Open the file at its start. Raises LoadError if it no longer exists or has changed since the load."""
        try:
            fd = open_regular(self.path)
        except NotRegularError as error:
            raise self._changed() from error
        except OSError as error:
            raise LoadError(f"{self.path}: {error.strerror}", code="missing-data") from error
        # The check is on the open file, so that nobody can replace it in between.
        file = io.FileIO(fd)
        try:
            self.require_unchanged(fd)
        except LoadError:
            file.close()
            raise
        return file

    def require_unchanged(self, fd: int) -> None:
        """Raise LoadError if the open file is not the one of the load, or has been written to since."""
        if self.stamp is not None and file_stamp(os.fstat(fd)) != self.stamp:
            raise self._changed()

    def _changed(self) -> LoadError:
        return LoadError(
            f"{self.path} has changed since the model was read",
            code="source-changed",
            hint=Advice("load the model again"),
        )

    def read(self) -> bytes:
        """Return the bytes. Raises LoadError as `open` does, and when the file is too short or changes meanwhile."""
        pieces, remaining = [], self.length
        with self.open() as file:
            file.seek(self.offset)
            while remaining:
                pieces.append(file.read(remaining))
                if not pieces[-1]:
                    raise LoadError(
                        f"{self.path} ends before byte {self.offset + self.length}", code="missing-data"
                    )
                remaining -= len(pieces[-1])
            self.require_unchanged(file.fileno())
        return b"".join(pieces)


@dataclass(frozen=True)
class BufferPayload:
    """A slice of the bytes a model was given as; `field` and `extra_fields` as in FilePayload."""

    buffer: memoryview
    length: int
    field: str = "raw_data"
    extra_fields: bytes = b""

    def read(self) -> bytes:
        """Return the bytes."""
        return bytes(self.buffer)


@dataclass(frozen=True)
class TensorPayload:
    """The payload of a tensor in the caller's own protobuf, which is not copied before it is read."""

    tensor: TensorProto
    length: int

    @classmethod
    def of(cls, tensor: TensorProto) -> TensorPayload:
        """Return the payload of a tensor that may hold its data: a length of 0 stands for none that can be referred to."""
        if tensor.data_type in (TensorProto.UNDEFINED, TensorProto.STRING):
            return cls(tensor, 0)
        lists = [len(getattr(tensor, name)) for name in DATA_FIELDS if name != "raw_data"]
        if tensor.HasField("raw_data"):
            if any(lists):
                return cls(tensor, 0)
            # From dims and type, as reading raw_data to take its length would copy it. `read` compares the two.
            length = byte_size(tensor.dims, tensor.data_type)
            return cls(tensor, len(tensor.raw_data) if length is None else length)
        name = data_field(tensor)
        if name is None or tensor.data_location == TensorProto.EXTERNAL or sum(map(bool, lists)) > 1:
            return cls(tensor, 0)
        return cls(tensor, len(getattr(tensor, name)) * (4 if name == "float_data" else 8))

    @property
    def field(self) -> str:
        """The field of the tensor that holds the bytes."""
        name = data_field(self.tensor)
        if name is None:
            raise LoadError(
                f"the data of tensor {self.tensor.name!r} was removed after the model was loaded",
                code="source-changed",
            )
        return name

    @property
    def extra_fields(self) -> bytes:
        """The tensor's external_data and data_location, serialised; empty if it is marked EXTERNAL but holds its data.

        (onnx.external_data_helper.convert_model_to_external_data leaves it so until the model is saved.)
        """
        if self.tensor.data_location == TensorProto.EXTERNAL:
            return b""
        others = TensorProto(external_data=self.tensor.external_data)
        if self.tensor.HasField("data_location"):
            others.data_location = self.tensor.data_location
        return bytes(others.SerializeToString())

    def read(self) -> bytes:
        """Return the bytes as `raw_data` would hold them. Raises LoadError if the tensor has changed."""
        name = self.field
        data = bytes(self.tensor.raw_data) if name == "raw_data" else packed_bytes(self.tensor, name)
        if len(data) != self.length:
            raise LoadError(
                f"tensor {self.tensor.name!r} has {count_of(len(data), 'byte')} of data,"
                f" but its dims and type need {self.length}",
                code="bad-external-data",
            )
        return data


@dataclass
class ObjectPayload:
    """The payload of a tensor object of another library, as onnx_ir's, which is not evaluated before it is read.

    `inlined` is the tensor as the structure holds it, serialised, where the data is there too.
    """

    tensor: Any
    length: int
    inlined: bytes = b""
    field: str = "raw_data"
    extra_fields: bytes = b""

    def read(self) -> bytes:
        """Return the bytes in the form of `raw_data`. Raises LoadError if the object gives another number of bytes."""
        data = bytes(self.tensor.tobytes())
        if len(data) != self.length:
            raise LoadError(
                f"tensor {self.tensor.name!r} gives {count_of(len(data), 'byte')} of data,"
                f" but its dims and type need {self.length}",
                code="bad-external-data",
            )
        return data


Payload = FilePayload | BufferPayload | TensorPayload | ObjectPayload


def pieces_of(payload: Payload, size: int) -> Iterator[bytes]:
    """Yield the bytes of a payload, `size` at a time. Raises LoadError as `read` does."""
    whole = payload.read() if isinstance(payload, (TensorPayload, ObjectPayload)) else b""
    for start in range(0, payload.length, size):
        length = min(size, payload.length - start)
        if isinstance(payload, FilePayload):
            yield replace(payload, offset=payload.offset + start, length=length).read()
        elif isinstance(payload, BufferPayload):
            yield bytes(payload.buffer[start : start + length])
        else:
            yield whole[start : start + length]


# The bytes of a tensor in memory


def byte_size(dims: Sequence[int], data_type: int) -> int | None:
    """Return the bytes of raw data of a dense tensor, or None if the type or a dim is unknown.

    Elements of less than 8 bits are packed, and the last byte is padded (onnx.proto, `raw_data`).
    """
    if data_type not in _BITS or any(dim < 0 for dim in dims):
        return None
    elements = 1
    for dim in dims:
        elements *= dim
    return (elements * _BITS[data_type] + 7) // 8


def has_type(name: str, data_type: int) -> bool:
    """Return whether the bytes of data field `name` are the raw data of a tensor of `data_type`."""
    return name == "raw_data" or data_type in _TYPES_OF_FIELD[name]


def data_field(tensor: TensorProto) -> str | None:
    """Return the name of the field of a tensor in memory whose bytes are its raw data; None if there is none."""
    if tensor.HasField("raw_data"):
        return "raw_data"
    for name in _TYPES_OF_FIELD:
        if len(getattr(tensor, name)) and has_type(name, tensor.data_type):
            return name
    return None


def packed_bytes(tensor: TensorProto, name: str) -> bytes:
    """Return the bytes of packed field `name`, little-endian.

    They come from the serialised tensor: a conversion to Python floats would quieten signalling NaNs.
    """
    number = TensorProto.DESCRIPTOR.fields_by_name[name].number
    before = TensorProto()
    for descriptor in TensorProto.DESCRIPTOR.fields:
        if descriptor.number >= number:
            continue
        value = getattr(tensor, descriptor.name)
        if hasattr(value, "extend"):
            getattr(before, descriptor.name).extend(value)
        elif tensor.HasField(descriptor.name):
            if descriptor.message_type is None:
                setattr(before, descriptor.name, value)
            else:
                getattr(before, descriptor.name).CopyFrom(value)
    length = len(getattr(tensor, name)) * (4 if name == "float_data" else 8)
    start = before.ByteSize() + 1 + (length.bit_length() + 6) // 7  # a tag of one byte, then the length
    return bytes(memoryview(tensor.SerializeToString())[start : start + length])
