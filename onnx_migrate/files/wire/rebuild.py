"""Replaces tensors in a serialised model without parsing the rest.

Only messages that can contain a tensor are parsed. All other bytes, unknown fields included, are copied as they are.
`split` uses this to leave large payloads out of a model, `assemble` to put them back.
"""

from __future__ import annotations

from collections.abc import Callable

from onnx_migrate.files.wire.protobuf import BYTES, MAX_DEPTH, Buffer, Malformed, header, parse_fields
from onnx_migrate.model.payloads import Payload
from onnx_migrate.model.tensor_fields import MODEL, TENSOR, MessageType

__all__ = ["Piece", "rebuild", "total_size"]

Piece = bytes | Payload
"""A part of a file to write: the bytes themselves, or a reference to where they are."""


def total_size(pieces: list[Piece]) -> int:
    """Return the length of `pieces` in bytes."""
    return sum(len(piece) if isinstance(piece, bytes) else piece.length for piece in pieces)


def rebuild(
    data: Buffer,
    start: int,
    end: int,
    may_change: Callable[[int, int], bool],
    replace: Callable[[int, int], list[Piece] | None],
    message_type: MessageType = MODEL,
    depth: int = 1,
) -> list[Piece] | None:
    """Return the message `data[start:end]` with some of its tensors replaced; None if none was.

    `may_change(start, end)` returns whether a nested message may contain a tensor to replace: only these are parsed.
    `replace(start, end)` returns the new bytes of the tensor there, or None to leave it. Raises Malformed.
    """
    if message_type is TENSOR:
        return replace(start, end)
    if depth > MAX_DEPTH:
        raise Malformed(f"messages nested more than {MAX_DEPTH} deep", start)
    declared = message_type.tensor_fields
    nested = [f for f in parse_fields(data, start, end) if f.wire_type == BYTES and f.number in declared]
    singular = [f.number for f in nested if not declared[f.number].repeated]
    pieces: list[Piece] = []
    done = start
    for field in nested:
        if not may_change(field.value, field.end) or singular.count(field.number) > 1:
            continue  # a parser merges singular messages that occur twice, so neither is the whole message
        inner_type = declared[field.number].message_type
        inner = rebuild(data, field.value, field.end, may_change, replace, inner_type, depth + 1)
        if inner is not None:
            pieces += (bytes(data[done : field.start]), header(field.number, total_size(inner)), *inner)
            done = field.end
    if not pieces:
        return None
    pieces.append(bytes(data[done:end]))
    return pieces
