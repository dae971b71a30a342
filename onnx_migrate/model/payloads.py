"""Where the bytes of a large tensor are: in a file, in a buffer, or in the caller's protobuf."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path

from onnx import TensorProto

from onnx_migrate.errors import LoadError
from onnx_migrate.messages import count_of
from onnx_migrate.model.tensors import data_field, packed_bytes
from onnx_migrate.safe_open import NotRegularError, open_regular

__all__ = ["BufferPayload", "FilePayload", "FileStamp", "Payload", "TensorPayload", "file_stamp"]

FileStamp = tuple[int, int, int, int]
"""Device, inode, size and modification time (ns): they differ when a file was replaced or changed."""


def file_stamp(status: os.stat_result) -> FileStamp:
    """Return the stamp of a file from the result of `os.stat`."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


@dataclass(frozen=True)
class FilePayload:
    """`length` bytes of `path` from `offset`; little-endian and dense, as `raw_data` would hold them.

    `field` is the TensorProto field that held them, and `extra_fields` the tensor's external_data and data_location
    as they were, serialised; both only for data inside a model, to write it back as it was.
    """

    path: Path
    offset: int
    length: int
    field: str = "raw_data"
    extra_fields: bytes = b""
    stamp: FileStamp | None = None

    def open(self) -> io.FileIO:
        """Open the file at its start. Raises LoadError when it is gone or has changed since the load."""
        try:
            fd = open_regular(self.path)
        except NotRegularError as error:
            raise self._changed() from error
        except OSError as error:
            raise LoadError(f"{self.path}: {error.strerror}", code="missing-data") from error
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
            hint="load the model again",
        )

    def read(self) -> bytes:
        """Return the bytes. Raises LoadError as `open` does, and when the file is too short or changes meanwhile."""
        data = bytearray(self.length)
        view = memoryview(data)
        with self.open() as file:
            file.seek(self.offset)
            while view:
                count = file.readinto(view)
                if not count:
                    raise LoadError(
                        f"{self.path} ends before byte {self.offset + self.length}", code="missing-data"
                    )
                view = view[count:]
            self.require_unchanged(file.fileno())
        return bytes(data)


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


Payload = FilePayload | BufferPayload | TensorPayload
