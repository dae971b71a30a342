"""Parses a serialised model: its structure as a ModelProto, its large payloads by reference."""

from __future__ import annotations

from collections.abc import Callable

import onnx
from google.protobuf.message import DecodeError

from onnx_migrate.advice import Advice, advice_of
from onnx_migrate.errors import LoadError
from onnx_migrate.files.file_signatures import HEAD, describe, not_a_model
from onnx_migrate.files.wire.faults import bad_text, is_too_deep
from onnx_migrate.files.wire.payload_references import split
from onnx_migrate.files.wire.protobuf import MAX_DEPTH, Buffer, Malformed, TooManyFields
from onnx_migrate.model.payloads import BufferPayload
from onnx_migrate.model.validity.size_limits import WHERE_FROM, require_size
from onnx_migrate.model.weights import MEMORY, Weights

__all__ = ["EMPTY", "parse", "parse_bytes", "require_graph", "require_text"]

EMPTY = Advice("copy, download or export it again")
"""The hint for a model without any bytes."""

_STRUCTURE_LIMIT = 2**31 - 1
"""Maximum number of bytes that protobuf reads or writes as one message."""

_SHOWN = 100
"""Maximum number of bytes of a name that a message shows."""


def parse_bytes(data: memoryview, name: str, weights: Weights) -> onnx.ModelProto:
    """Return the structure of the model in `data` and enter its payloads in `weights`. Raises LoadError."""
    if not data:
        raise LoadError(f"{name} is empty", code="empty", hint=EMPTY)
    data = data.cast("B")

    def keep(offset: int, length: int, field: str, extra_fields: bytes) -> tuple[str, int]:
        weights.memory.append(BufferPayload(data[offset : offset + length], length, field, extra_fields))
        return f"{MEMORY}{len(weights.memory) - 1}", 0

    return parse(data, name, keep)


def parse(
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
    except TooManyFields as error:
        raise LoadError(
            f"{name}: it has {error.reason}", code="too-large", hint=Advice(WHERE_FROM)
        ) from error
    except Malformed as error:
        if is_too_deep(data):
            raise _too_deep(name) from error
        raise not_a_model(error, head(), len(data), name) from error
    if structure.count(MEMORY.encode()) > kept:
        # Only `keep` writes such locations: one that was in the file would resolve to another tensor's payload.
        raise LoadError(
            f"{name}: the external data of a tensor is at {MEMORY!r}, a name that is reserved and not a file",
            code="missing-data",
            hint="external data must be in a file beside the model",
        )
    if len(structure) > _STRUCTURE_LIMIT:
        raise LoadError(
            f"{name}: the graph without its large tensors takes {len(structure)} bytes, and protobuf reads less than 2 GB",
            hint=Advice("store large tensors in raw_data, float_data or double_data, or as external data"),
        )
    try:
        proto: onnx.ModelProto = onnx.ModelProto.FromString(structure)
    except DecodeError as error:
        if is_too_deep(structure):
            raise _too_deep(name) from error
        raise not_a_model(Malformed("a field in its graph is damaged", 0), head(), len(data), name) from error
    require_graph(proto, name, head)
    require_text(proto, structure, name)
    return proto


def _too_deep(name: str) -> LoadError:
    return LoadError(
        f"{name}: its messages are nested {MAX_DEPTH} deep and more, and protobuf reads less",
        code="too-deep",
        hint=Advice(f"sub-graphs can be nested 31 deep; {WHERE_FROM}"),
    )


def require_graph(proto: onnx.ModelProto, name: str, source: Callable[[], bytes]) -> None:
    """Raise LoadError for a message that has no graph or no IR version, or is too large.

    `source` returns the first bytes of its file.
    """
    if not proto.HasField("graph"):
        # The first bytes often tell which kind of file it is.
        looks, hint = describe(source())
        raise LoadError(
            f"{name} is not an ONNX model: {looks or 'it has no graph'}", hint=advice_of(hint, tried=False)
        )
    if proto.ir_version < 1:
        raise LoadError(
            f"{name} is not a valid ONNX model: its ir_version is {proto.ir_version}, and must be at least 1",
            hint=Advice("export it again, or set ir_version"),
        )
    require_size(proto, name)


def require_text(proto: onnx.ModelProto, structure: bytes, name: str) -> None:
    """Raise LoadError for a model with a name that is not UTF-8; `structure` is `proto` serialised."""
    fault = bad_text(proto, structure)
    if fault is not None:
        raise LoadError(
            f"{name} is not a valid ONNX model: its field {fault[0]} holds {fault[1][:_SHOWN]!r}, which is not UTF-8",
            code="not-utf8",
            hint=Advice(
                "protobuf's text must be UTF-8: correct the program that wrote the name, or export the model again"
            ),
        )
