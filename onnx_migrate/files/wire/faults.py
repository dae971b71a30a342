"""Finds two faults that protobuf does not report: messages that are nested too deep, and names that are not UTF-8."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import onnx
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from onnx_migrate.files.wire.protobuf import BYTES, MAX_DEPTH, Buffer, Malformed, parse_fields

__all__ = ["bad_text", "is_too_deep"]


def is_too_deep(data: Buffer) -> bool:
    """Return whether some message of the model in `data` lies within MAX_DEPTH others; damaged messages are skipped."""
    waiting: list[tuple[int, int, Any, int]] = [(0, len(data), onnx.ModelProto.DESCRIPTOR, 0)]
    while waiting:
        start, end, message, depth = waiting.pop()
        # protobuf refuses deeper messages.
        if depth >= MAX_DEPTH:
            return True
        try:
            fields = parse_fields(data, start, end)
        except Malformed:
            continue
        for field in fields:
            declared = message.fields_by_number.get(field.number)
            # Only messages can be nested.
            if field.wire_type == BYTES and declared is not None and declared.message_type is not None:
                waiting.append((field.value, field.end, declared.message_type, depth + 1))
    return False


_PROSE = frozenset({"doc_string", "metadata_props", "producer_name", "producer_version"})
"""Fields with texts for people: their texts are kept unchanged."""


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
        # Documentation may have any bytes, because no program looks names up there.
        if field.name in _PROSE:
            continue
        values: Any = [value] if isinstance(value, (str, bytes, Message)) else value
        if field.type == FieldDescriptor.TYPE_STRING:
            wrong = next((element for element in values if isinstance(element, bytes)), None)
            if wrong is not None:
                yield f"{message.DESCRIPTOR.name}.{field.name}", wrong
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for element in values:
                yield from _not_text(element)
