"""How deep the messages of a serialised model are nested, for a message that protobuf does not parse for that reason."""

from __future__ import annotations

from typing import Any

import onnx

from onnx_migrate.files.wire.protobuf import BYTES, MAX_DEPTH, Buffer, Malformed, parse_fields

__all__ = ["is_too_deep"]


def is_too_deep(data: Buffer) -> bool:
    """Return whether some message of the model in `data` lies within MAX_DEPTH others; what is damaged is passed over."""
    waiting: list[tuple[int, int, Any, int]] = [(0, len(data), onnx.ModelProto.DESCRIPTOR, 0)]
    while waiting:
        start, end, message, depth = waiting.pop()
        if depth >= MAX_DEPTH:
            return True
        try:
            fields = parse_fields(data, start, end)
        except Malformed:
            continue
        for field in fields:
            declared = message.fields_by_number.get(field.number)
            if field.wire_type == BYTES and declared is not None and declared.message_type is not None:
                waiting.append((field.value, field.end, declared.message_type, depth + 1))
    return False
