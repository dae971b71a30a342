"""Finds text that is not UTF-8: protobuf's parsers take it in a file of proto2, as ONNX's is, and then return bytes for it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import onnx
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

__all__ = ["bad_text"]

_PROSE = frozenset({"doc_string", "metadata_props", "producer_name", "producer_version"})
"""Fields that are for people: what they say is kept as it is."""


def bad_text(proto: onnx.ModelProto, structure: bytes) -> tuple[str, bytes] | None:
    """Return the field and the bytes of the first name in a model that is not UTF-8; None where all are.

    `structure` is the model serialised. It is parsed once more, by rules that ask for UTF-8, at the speed of the first time.
    Source: https://protobuf.dev/programming-guides/proto3/#scalar, "string".
    """
    try:
        _strict().FromString(structure)
    except DecodeError:
        return next(_not_text(proto), None)
    return None


@cache
def _strict() -> Any:
    """Return the class of ModelProto as proto3 has it."""
    file = descriptor_pb2.FileDescriptorProto()
    onnx.ModelProto.DESCRIPTOR.file.CopyToProto(file)
    file.syntax = "proto3"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    name = onnx.ModelProto.DESCRIPTOR.full_name
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def _not_text(message: Message) -> Iterator[tuple[str, bytes]]:
    for field, value in message.ListFields():
        if field.name in _PROSE:
            continue
        values: Any = [value] if isinstance(value, (str, bytes, Message)) else value
        if field.type == FieldDescriptor.TYPE_STRING:
            wrong = next((item for item in values if isinstance(item, bytes)), None)
            if wrong is not None:
                yield f"{message.DESCRIPTOR.name}.{field.name}", wrong
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for item in values:
                yield from _not_text(item)
