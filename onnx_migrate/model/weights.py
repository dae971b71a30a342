"""Tensor payloads, left where they are: in a file, in a buffer, or in the caller's protobuf.

A large tensor of a `Model` carries no data. It is marked EXTERNAL, as ONNX spells "elsewhere", and its
`external_data` names a location, an offset and a length. A location is a path relative to `Weights.folder`
(the model's own file when the weights lie inside it: the structure is then itself a valid model with external
data), or `MEMORY` followed by an index into `Weights.memory`.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.errors import LoadError

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "INLINE_LIMIT",
    "MEMORY",
    "BufferPayload",
    "FilePayload",
    "Payload",
    "Stamp",
    "TensorPayload",
    "Weights",
    "byte_size",
    "data_field",
    "has_type",
    "refer",
    "stamp",
    "tensors",
]

INLINE_LIMIT = 4096
"""Payloads of up to this many bytes stay in the structure, so that constants are at hand."""

MEMORY = "onnx-migrate:memory:"

Stamp = tuple[int, int, int, int]
"""Device, inode, size and modification time (ns): what a file was when the model was read."""

# The fields whose bytes on the wire are the tensor's bytes, and their types (raw_data: any).
_FLAT_FIELDS: dict[str, tuple[int, ...]] = {
    "raw_data": (),
    "float_data": (TensorProto.FLOAT, TensorProto.COMPLEX64),
    "double_data": (TensorProto.DOUBLE, TensorProto.COMPLEX128),
}
_DATA_FIELDS = (*_FLAT_FIELDS, "int32_data", "int64_data", "uint64_data", "string_data")

# Bits of one element by TensorProto.DataType; numbers, as an older onnx lacks newer names. No entry: unknown.
_BITS = dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8) | dict.fromkeys((4, 5, 10, 16), 16)
_BITS |= {1: 32, 6: 32, 12: 32, 7: 64, 11: 64, 13: 64, 14: 64, 15: 128, 21: 4, 22: 4, 23: 4, 25: 2, 26: 2}


def byte_size(dims: Sequence[int], data_type: int) -> int | None:
    """Return how many bytes a dense tensor's raw data takes (packed below 8 bits), or None if unknown."""
    if data_type not in _BITS or any(dim < 0 for dim in dims):
        return None
    elements = 1
    for dim in dims:
        elements *= dim
    return (elements * _BITS[data_type] + 7) // 8


def has_type(name: str, data_type: int) -> bool:
    """Tell whether the bytes of data field `name` are the raw data of a tensor of `data_type`."""
    return name == "raw_data" or data_type in _FLAT_FIELDS[name]


def data_field(tensor: TensorProto) -> str | None:
    """Return the field a tensor held in memory has its bytes in, if they are raw data there; else None."""
    if tensor.HasField("raw_data"):
        return "raw_data"
    for name in ("float_data", "double_data"):
        if len(getattr(tensor, name)) and has_type(name, tensor.data_type):
            return name
    return None


@dataclass(frozen=True)
class FilePayload:
    """`length` bytes of `path` from `offset`; little-endian and dense, as `raw_data` would hold them.

    `field` is the TensorProto field that held them, and `extra_fields` the tensor's external_data and data_location
    beside it, serialised; both only for data inside a model, to write it back as it was.
    """

    path: Path
    offset: int
    length: int
    field: str = "raw_data"
    extra_fields: bytes = b""
    stamp: Stamp | None = None

    def open(self) -> io.FileIO:
        """Open the file at its start. Raises LoadError when it is gone or has changed since the load."""
        try:
            file = self.path.open("rb", buffering=0)
        except OSError as error:
            raise LoadError(f"{self.path}: {error.strerror}", code="missing-data") from error
        if self.stamp is not None and stamp(os.fstat(file.fileno())) != self.stamp:
            file.close()
            raise LoadError(
                f"{self.path} has changed since the model was read",
                code="source-changed",
                hint="load it again",
            )
        return file

    def read(self) -> bytes:
        """Return the bytes. Raises LoadError as `open` does, and when the file is too short."""
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
    """The payload of a tensor that stays in the caller's own protobuf, never copied before it is needed."""

    tensor: TensorProto
    length: int

    @property
    def field(self) -> str:
        """The field of the tensor that holds the bytes."""
        name = data_field(self.tensor)
        if name is None:
            raise LoadError(f"tensor {self.tensor.name!r} has lost its data", code="source-changed")
        return name

    @property
    def extra_fields(self) -> bytes:
        """The tensor's external_data and data_location; none when it is only waiting to be written out."""
        if self.tensor.data_location == TensorProto.EXTERNAL:
            return b""
        beside = TensorProto(external_data=self.tensor.external_data)
        if self.tensor.HasField("data_location"):
            beside.data_location = self.tensor.data_location
        return bytes(beside.SerializeToString())

    def read(self) -> bytes:
        """Return the bytes as `raw_data` would hold them. Raises LoadError if the tensor has changed."""
        name = self.field
        data = bytes(self.tensor.raw_data) if name == "raw_data" else _packed(self.tensor, name)
        if len(data) != self.length:
            raise LoadError(
                f"tensor {self.tensor.name!r} has {len(data)} bytes of data; dims and type say {self.length}",
                code="bad-external-data",
            )
        return data


Payload = FilePayload | BufferPayload | TensorPayload


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
    _stamps: dict[str, Stamp] = field(default_factory=dict)

    def copy(self) -> Weights:
        """Return the same payloads to be found by a second structure; either may `keep` more."""
        return Weights(
            self.folder, list(self.memory), self.source, dict(self.inside), self.digest, dict(self._stamps)
        )

    def keep(self, tensor: TensorProto, payload: Payload) -> None:
        """Make `tensor` a reference to `payload`, in place; its own data fields are cleared."""
        for name in (*_DATA_FIELDS, "external_data"):
            tensor.ClearField(name)
        refer(tensor, f"{MEMORY}{len(self.memory)}", 0, payload.length)
        self.memory.append(payload)

    def is_absent(self, tensor: TensorProto) -> bool:
        """Tell whether a tensor marked EXTERNAL names a file, and the model came without a folder to find it in."""
        locations = [entry.value for entry in tensor.external_data if entry.key == "location"]
        return self.folder is None and any(locations) and not locations[0].startswith(MEMORY)

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

    def _checked(self, tensor: TensorProto, folder: Path, location: str) -> Stamp:
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
        return stamp(status)

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
        for name in (*_DATA_FIELDS, "external_data", "data_location"):
            copy.ClearField(name)
        copy.raw_data = payload.read()
        return copy


def stamp(status: os.stat_result) -> Stamp:
    """Return what tells a file from another, or from itself after a change."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _packed(tensor: TensorProto, name: str) -> bytes:
    """Return the bytes of a packed list of numbers; off the wire, as Python's floats lose signalling NaNs."""
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


def refer(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    """Write the ONNX external-data entries for `length` bytes of `location` from `offset`, in place."""
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def tensors(proto: onnx.ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of a model: initializers and attributes, of all graphs, sub-graphs and functions."""
    yield from _graph_tensors(proto.graph)
    for function in proto.functions:
        for attribute in function.attribute_proto:
            yield from _attribute_tensors(attribute)
        for node in function.node:
            for attribute in node.attribute:
                yield from _attribute_tensors(attribute)
    for training in proto.training_info:
        yield from _graph_tensors(training.initialization)
        yield from _graph_tensors(training.algorithm)


def _graph_tensors(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type not in _SCALARS:
                yield from _attribute_tensors(attribute)


_SCALARS = frozenset(
    getattr(onnx.AttributeProto, name) for name in ("FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS")
)


def _attribute_tensors(attribute: onnx.AttributeProto) -> Iterator[TensorProto]:
    if attribute.type in _SCALARS:
        return
    # By what is there, not by `type`, which IR version 1 did not have.
    if attribute.HasField("t"):
        yield attribute.t
    yield from attribute.tensors
    if attribute.HasField("g"):
        yield from _graph_tensors(attribute.g)
    for graph in attribute.graphs:
        yield from _graph_tensors(graph)
    if attribute.HasField("sparse_tensor"):
        yield attribute.sparse_tensor.values
        yield attribute.sparse_tensor.indices
    for sparse in attribute.sparse_tensors:
        yield sparse.values
        yield sparse.indices
