"""Reading a model's structure, and finding where its weights are."""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from onnx_migrate.errors import LoadError
from onnx_migrate.files.file_signatures import HEAD, describe
from onnx_migrate.files.from_proto import structure_of
from onnx_migrate.files.remote.download import Fetched, at_hand
from onnx_migrate.files.wire.protobuf import BYTES, VARINT, Buffer, Malformed, decode_varint
from onnx_migrate.files.wire.split import split
from onnx_migrate.model.model import Model
from onnx_migrate.model.weights import (
    MEMORY,
    BufferPayload,
    FilePayload,
    Weights,
    stamp,
    tensors,
)

__all__ = ["digest", "from_file", "load"]

STRUCTURE_LIMIT = 2**31 - 1
"""Bytes of one message protobuf reads and writes."""


Source = str | os.PathLike[str] | bytes | onnx.ModelProto
"""What a model is read from: a path, a URL, its bytes, or the message itself."""


def load(source: Source, *, absent: bool = False) -> Model:
    """Read a model; payloads of more than INLINE_LIMIT bytes stay where they are and become references.

    A path: the file is scanned, not read; external data must lie in the model's folder. A URL: see `fetch`. Bytes and
    protos are neither changed nor copied, but must not change while the result is in use. With `absent`, a proto may refer
    to external data that it came without; the references stay, and only who reads such a tensor fails.

    Raises LoadError with one of the codes `no-such-file`, `is-directory`, `cannot-read`, `empty`,
    `truncated`, `not-onnx`; for external data `outside-folder`, `missing-data`, `bad-external-data`.
    """
    start = time.perf_counter()
    fetched = None
    origin: dict[str, None] = {}
    if isinstance(source, onnx.ModelProto):
        name, weights = "<ModelProto>", Weights()
        proto = structure_of(source, weights)
        _require_graph(proto, name, source=lambda: b"")
    elif isinstance(source, (bytes, bytearray, memoryview)):
        name, weights = "<bytes>", Weights()
        proto = _from_bytes(memoryview(source), name, weights)
    else:
        source = at_hand(source)
        path = Path(os.path.abspath(source))
        fetched = source if isinstance(source, Fetched) else None
        name, weights = str(source), Weights(path.parent, source=path)
        proto = from_file(path, name, weights)
        origin[str(fetched or path)] = None
        if fetched:
            fetched.bring(tensors(proto))
    for tensor in tensors(proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            if absent and weights.is_absent(tensor):
                continue
            try:
                payload = weights.payload(tensor)
            except LoadError as error:
                reason = fetched.told(error.reason) if fetched else error.reason
                raise LoadError(f"{name}: {reason}", code=error.code, hint=error.hint) from error
            if isinstance(payload, FilePayload) and payload.path != weights.source:
                origin[fetched.url_of(payload.path) if fetched else str(payload.path)] = None
    if len(origin) == 1:
        weights.digest = digest(proto)
    seconds = time.perf_counter() - start
    return Model(proto, weights, name, keepalive=fetched, origin=tuple(origin), load_seconds=seconds)


def digest(proto: onnx.ModelProto) -> bytes:
    """Return a fingerprint of a structure."""
    return hashlib.blake2b(proto.SerializeToString()).digest()


def from_file(path: Path, name: str, weights: Weights) -> onnx.ModelProto:
    """Return the structure of the model at `path`; external data is not looked at. Raises LoadError."""
    try:
        mode = os.stat(path).st_mode  # before opening it, which waits for ever at a pipe
        if stat.S_ISDIR(mode):
            models = sorted(path.glob("*.onnx"))
            hint = f"did you mean {models[0]}?" if len(models) == 1 else "give the .onnx file in it"
            raise LoadError(f"{name} is a directory", code="is-directory", hint=hint)
        if not stat.S_ISREG(mode):
            raise LoadError(
                f"{name} is not a regular file", code="cannot-read", hint="save it to a file first"
            )
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size == 0:
                raise LoadError(f"{name} is empty", code="empty")
            stamped = stamp(status)
            sayable = path.name == path.name.encode("utf-8", "replace").decode()  # else no protobuf string
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:

                def keep(offset: int, length: int, field: str, extra_fields: bytes) -> tuple[str, int]:
                    payload = FilePayload(path, offset, length, field, extra_fields, stamped)
                    if not sayable:
                        weights.memory.append(payload)
                        return f"{MEMORY}{len(weights.memory) - 1}", 0
                    weights.inside[offset, length] = payload
                    return path.name, offset

                return _parse(data, name, keep)
    except FileNotFoundError as error:
        raise LoadError(f"{name}: no such file", code="no-such-file") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LoadError(f"{name}: cannot be read: {reason}", code="cannot-read") from error


def _from_bytes(data: memoryview, name: str, weights: Weights) -> onnx.ModelProto:
    if not data:
        raise LoadError(f"{name} is empty", code="empty")
    data = data.cast("B")

    def keep(offset: int, length: int, field: str, extra_fields: bytes) -> tuple[str, int]:
        weights.memory.append(BufferPayload(data[offset : offset + length], length, field, extra_fields))
        return f"{MEMORY}{len(weights.memory) - 1}", 0

    return _parse(data, name, keep)


def _parse(
    data: Buffer, name: str, keep: Callable[[int, int, str, bytes], tuple[str, int]]
) -> onnx.ModelProto:
    """Return the structure of the model in `data`. Raises LoadError."""

    def head() -> bytes:
        return bytes(data[:HEAD])

    kept = 0

    def counted(offset: int, length: int, field: str, extra_fields: bytes) -> tuple[str, int]:
        nonlocal kept
        kept += 1
        return keep(offset, length, field, extra_fields)

    try:
        structure = split(data, counted)
    except Malformed as error:
        raise _not_onnx(error, head(), len(data), name) from error
    if structure.count(MEMORY.encode()) > kept:
        # Such a location is ours to give; in a file it would lead to another tensor's payload.
        raise LoadError(f"{name}: a tensor lies in {MEMORY!r}, which is no file", code="missing-data")
    if len(structure) > STRUCTURE_LIMIT:
        raise LoadError(
            f"{name}: {len(structure)} bytes besides the weights, more than protobuf can read",
            hint="large tensors must be in raw_data",
        )
    try:
        proto: onnx.ModelProto = onnx.ModelProto.FromString(structure)
    except DecodeError as error:
        raise _not_onnx(Malformed("damaged within the graph", 0), head(), len(data), name) from error
    _require_graph(proto, name, head)
    return proto


def _require_graph(proto: onnx.ModelProto, name: str, source: Callable[[], bytes]) -> None:
    """Refuse a message that has none of what makes it a model."""
    if not proto.HasField("graph"):
        looks, hint = describe(source())
        raise LoadError(f"{name} is not an ONNX model: {looks or 'it has no graph'}", hint=hint)
    if proto.ir_version < 1:
        raise LoadError(f"{name} is not a valid ONNX model: its ir_version is {proto.ir_version}")


def _not_onnx(error: Malformed, head: bytes, total: int, name: str) -> LoadError:
    """Say what is the matter with bytes that do not parse."""
    looks, hint = describe(head)
    if looks:
        return LoadError(f"{name} is not an ONNX model: {looks}", hint=hint)
    if not _starts_as_model(head):
        return LoadError(f"{name} is not an ONNX model: not a protobuf message")
    if error.missing:
        lost = f"{error.missing} bytes are missing" if error.missing > 1 else "the end is missing"
        return LoadError(
            f"{name} is truncated: it ends at byte {total} in a field begun at byte {error.at}; {lost}",
            code="truncated",
            hint="copy or download it again",
        )
    where = f"at byte {error.at}: " if error.at else ""
    return LoadError(
        f"{name} is not a valid ONNX model: {where}{error.reason}", hint="copy or download it again"
    )


_FIELDS = {1: VARINT, 5: VARINT} | dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25, 26), BYTES)


def _starts_as_model(head: bytes) -> bool:
    """Tell whether the first field could be one of ModelProto's."""
    try:
        tag, _ = decode_varint(head, 0, len(head))
    except Malformed:
        return False
    return _FIELDS.get(tag >> 3) == tag & 7
