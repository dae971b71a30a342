"""Reads a model's structure into memory and leaves its large payloads where they are, as references."""

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
from onnx_migrate.files.file_signatures import HEAD, describe, not_a_model
from onnx_migrate.files.from_proto import structure_of
from onnx_migrate.files.remote.download import DownloadedModel, ensure_local
from onnx_migrate.files.wire.protobuf import Buffer, Malformed
from onnx_migrate.files.wire.split import split
from onnx_migrate.model.model import Model
from onnx_migrate.model.payloads import BufferPayload, FilePayload, file_stamp
from onnx_migrate.model.tensors import location_of, tensors
from onnx_migrate.model.weights import MEMORY, Weights

__all__ = ["from_file", "load", "structure_digest"]

EMPTY = "copy, download or export it again"
"""What helps where a model has no bytes."""

STRUCTURE_LIMIT = 2**31 - 1
"""The most bytes that protobuf reads or writes as one message."""


Source = str | os.PathLike[str] | bytes | onnx.ModelProto
"""What a model is read from: a path, a URL, its serialised bytes, or a ModelProto."""


def load(source: Source, *, allow_missing_data: bool = False) -> Model:
    """Read a model's structure; payloads of more than INLINE_LIMIT bytes stay where they are and become references.

    A file at a path is mapped and scanned, not read as a whole; its external data must be in the model's folder. A model
    at a URL is downloaded first (see `remote.download`). Bytes and protos are neither changed nor copied, and must not
    change while the result is in use. With `allow_missing_data`, a proto may refer to external data although it came
    without a folder: the references stay, and reading such a tensor raises LoadError.

    Whether the model is valid is not asked here, as that costs as much again: pipelines do before their first pass, and
    `compare` does (engine/validity.py). So `migrate`, `convert_version`, `inspect`, `batch` and `verify` refuse an invalid one.

    Raises LoadError with one of the codes `no-such-file`, `is-directory`, `cannot-read`, `empty`, `truncated`, `not-onnx`;
    for external data `outside-folder`, `missing-data`, `bad-external-data`.
    """
    start = time.perf_counter()
    downloaded = None
    origin: dict[str, None] = {}
    if isinstance(source, onnx.ModelProto):
        name, weights = "<ModelProto>", Weights()
        proto = structure_of(source, weights)
        _require_graph(proto, name, source=lambda: b"")
    elif isinstance(source, (bytes, bytearray, memoryview)):
        name, weights = "<bytes>", Weights()
        proto = _from_bytes(memoryview(source), name, weights)
    else:
        source = ensure_local(source)
        path = Path(os.path.abspath(source))
        downloaded = source if isinstance(source, DownloadedModel) else None
        name, weights = str(source), Weights(path.parent, source=path)
        proto = from_file(path, name, weights)
        target = path.resolve()
        if target.parent != path.parent.resolve() and _has_no_external_data(proto, path.name):
            # ONNX Runtime refuses data behind a link that leads out of the folder, as those of Hugging Face's cache do.
            weights = Weights(target.parent, source=target)
            proto = from_file(target, name, weights)
        origin[str(downloaded or path)] = None
        if downloaded:
            downloaded.download_external_data(tensors(proto))
    for tensor in tensors(proto):
        if tensor.data_location == TensorProto.EXTERNAL:
            if allow_missing_data and weights.is_absent(tensor):
                continue
            try:
                payload = weights.payload(tensor)
            except LoadError as error:
                reason = downloaded.with_url(error.reason) if downloaded else error.reason
                raise LoadError(f"{name}: {reason}", code=error.code, hint=error.hint) from error
            if isinstance(payload, FilePayload) and payload.path != weights.source:
                origin[downloaded.url_of(payload.path) if downloaded else str(payload.path)] = None
    if len(origin) == 1:
        weights.digest = structure_digest(proto)
    seconds = time.perf_counter() - start
    return Model(proto, weights, name, keepalive=downloaded, origin=tuple(origin), load_seconds=seconds)


def _has_no_external_data(proto: onnx.ModelProto, own: str) -> bool:
    """Return whether all payloads of a structure are in the model's file, whose name is `own`."""
    external = (tensor for tensor in tensors(proto) if tensor.data_location == TensorProto.EXTERNAL)
    return all(location_of(tensor) == own for tensor in external)


def structure_digest(proto: onnx.ModelProto) -> bytes:
    """Return a BLAKE2b of a structure, by which `save` recognises a model that was not changed since it was loaded."""
    return hashlib.blake2b(proto.SerializeToString()).digest()


def from_file(path: Path, name: str, weights: Weights) -> onnx.ModelProto:
    """Return the structure of the model at `path` and enter its payloads in `weights`; external data is not checked.

    `name` is how messages call the model. Raises LoadError.
    """
    try:
        mode = os.stat(path).st_mode  # before it is opened, as opening a pipe blocks until there is a writer
        if stat.S_ISDIR(mode):
            models = sorted(path.glob("*.onnx"))
            hint = (
                f"did you mean {models[0]}?" if len(models) == 1 else "give the path of the .onnx file in it"
            )
            raise LoadError(f"{name} is a directory", code="is-directory", hint=hint)
        if not stat.S_ISREG(mode):
            raise LoadError(
                f"{name} is not a regular file",
                code="cannot-read",
                hint="copy its content to a file and give that",
            )
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if status.st_size == 0:
                raise LoadError(f"{name} is empty", code="empty", hint=EMPTY)
            stamped = file_stamp(status)
            # A location is a protobuf string, so it must be UTF-8; other file names are only kept in memory.
            is_utf8 = path.name == path.name.encode("utf-8", "replace").decode()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:

                def keep(offset: int, length: int, field: str, extra_fields: bytes) -> tuple[str, int]:
                    payload = FilePayload(path, offset, length, field, extra_fields, stamped)
                    if not is_utf8:
                        weights.memory.append(payload)
                        return f"{MEMORY}{len(weights.memory) - 1}", 0
                    weights.inside[offset, length] = payload
                    return path.name, offset

                return _parse(data, name, keep)
    except FileNotFoundError as error:
        raise LoadError(f"{name}: no such file", code="no-such-file", hint="check the path") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LoadError(f"{name}: cannot be read: {reason}", code="cannot-read") from error


def _from_bytes(data: memoryview, name: str, weights: Weights) -> onnx.ModelProto:
    if not data:
        raise LoadError(f"{name} is empty", code="empty", hint=EMPTY)
    data = data.cast("B")

    def keep(offset: int, length: int, field: str, extra_fields: bytes) -> tuple[str, int]:
        weights.memory.append(BufferPayload(data[offset : offset + length], length, field, extra_fields))
        return f"{MEMORY}{len(weights.memory) - 1}", 0

    return _parse(data, name, keep)


def _parse(
    data: Buffer, name: str, keep: Callable[[int, int, str, bytes], tuple[str, int]]
) -> onnx.ModelProto:
    """Return the structure of the model in `data`; `keep` is called for each large payload, as by `split`.

    Raises LoadError.
    """

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
        raise not_a_model(error, head(), len(data), name) from error
    if structure.count(MEMORY.encode()) > kept:
        # Only `keep` writes such locations: one that was in the file would resolve to another tensor's payload.
        raise LoadError(
            f"{name}: the external data of a tensor is at {MEMORY!r}, a name that is reserved and not a file",
            code="missing-data",
            hint="external data must be in a file beside the model",
        )
    if len(structure) > STRUCTURE_LIMIT:
        raise LoadError(
            f"{name}: the graph without its large tensors takes {len(structure)} bytes, and protobuf reads less than 2 GB",
            hint="store large tensors in raw_data, float_data or double_data, or as external data",
        )
    try:
        proto: onnx.ModelProto = onnx.ModelProto.FromString(structure)
    except DecodeError as error:
        raise not_a_model(Malformed("a field in its graph is damaged", 0), head(), len(data), name) from error
    _require_graph(proto, name, head)
    return proto


def _require_graph(proto: onnx.ModelProto, name: str, source: Callable[[], bytes]) -> None:
    """Raise LoadError for a message without a graph or an IR version; `source` returns the first bytes of its file."""
    if not proto.HasField("graph"):
        looks, hint = describe(source())
        raise LoadError(f"{name} is not an ONNX model: {looks or 'it has no graph'}", hint=hint)
    if proto.ir_version < 1:
        raise LoadError(
            f"{name} is not a valid ONNX model: its ir_version is {proto.ir_version}, and must be at least 1",
            hint="export it again, or set ir_version",
        )
