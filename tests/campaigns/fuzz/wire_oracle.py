"""The promise of the wire reader: it reads what protobuf's own parser reads, and refuses what that refuses."""

from __future__ import annotations

import onnx
from google.protobuf.message import DecodeError, Message

from onnx_migrate import files
from onnx_migrate.errors import LoadError
from tests.campaigns.fuzz.mutations import is_repeated, messages

__all__ = ["wire_finds"]

_OF_ITS_OWN = {"missing-data", "bad-external-data", "outside-folder"}
"""What is refused though it parses: a model that came as bytes has no folder for external data."""


def _is_not_text(message: Message) -> bool:
    """Return whether a field of text holds bytes, as protobuf returns what is not UTF-8."""
    return any(
        field.type == field.TYPE_STRING
        and any(isinstance(item, bytes) for item in (value if is_repeated(field) else [value]))
        for field, value in message.ListFields()
    )


def wire_finds(data: bytes) -> list[str]:
    """Return how `files.load` differs from protobuf's parser on these bytes; nothing where it does not."""
    try:
        parsed = onnx.ModelProto.FromString(data)
    except DecodeError:
        parsed = None
    try:
        model = files.load(data)
    except LoadError as error:
        allowed = (
            parsed is None
            or not data
            or not parsed.HasField("graph")
            or parsed.ir_version < 1
            or error.code in _OF_ITS_OWN
        )
        if error.code == "not-utf8":
            allowed = any(_is_not_text(message) for message in messages(parsed))
        return [] if allowed else [f"wire: refused although protobuf reads it: {error}"]
    if parsed is None:
        return ["wire: read although protobuf refuses it"]
    try:
        read = files.inline(model)
    except LoadError as error:
        return [] if error.code in _OF_ITS_OWN else [f"wire: cannot be put together again: {error}"]
    if read.SerializeToString(deterministic=True) != parsed.SerializeToString(deterministic=True):
        return ["wire: read as another model than protobuf reads"]
    return []
