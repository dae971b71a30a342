"""Protobuf's wire format, as far as finding the tensors of a model needs it.

`rebuild` is the one walk: reading leaves large payloads out of a model's bytes with it, writing puts them
back. It parses no more than the fields of messages that can hold a tensor, and copies everything else,
unknown fields included, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, overload

from onnx_migrate.model.weights import Payload

__all__ = [
    "MODEL",
    "TENSOR",
    "Buffer",
    "Field",
    "Kind",
    "Malformed",
    "Piece",
    "encoded",
    "fields",
    "header",
    "rebuild",
    "size",
    "varint",
]

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)

MAX_DEPTH = 100
"""How deep protobuf's own parsers follow messages within messages."""


class Buffer(Protocol):
    """bytes, a memoryview of bytes, or an mmap."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> bytes | memoryview: ...


Piece = bytes | Payload
"""A stretch of output: at hand, or still where it lies."""


class Malformed(Exception):
    """Not the wire format, at byte `at`; `missing`: bytes the whole buffer is short, if that is it."""

    def __init__(self, reason: str, at: int, missing: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at
        self.missing = missing


class Field(NamedTuple):
    """One field of a message: its tag begins at `start`, its value spans `value` to `end`."""

    number: int
    wire_type: int
    start: int
    value: int
    end: int


class Kind:
    """A message type: the type of each of its fields that can lead to a tensor, and whether it repeats."""

    def __init__(self) -> None:
        self.children: dict[int, tuple[Kind, bool]] = {}


MODEL, TENSOR = Kind(), Kind()
_GRAPH, _NODE, _ATTRIBUTE, _FUNCTION, _TRAINING, _SPARSE = (Kind() for _ in range(6))
# Field numbers of onnx.proto; a test compares them with onnx's descriptors.
MODEL.children = {7: (_GRAPH, False), 20: (_TRAINING, True), 25: (_FUNCTION, True)}
_GRAPH.children = {1: (_NODE, True), 5: (TENSOR, True), 15: (_SPARSE, True)}
_NODE.children = {5: (_ATTRIBUTE, True)}
_ATTRIBUTE.children = {
    5: (TENSOR, False),
    6: (_GRAPH, False),
    10: (TENSOR, True),
    11: (_GRAPH, True),
    22: (_SPARSE, False),
    23: (_SPARSE, True),
}
_FUNCTION.children = {7: (_NODE, True), 11: (_ATTRIBUTE, True)}
_TRAINING.children = {1: (_GRAPH, False), 2: (_GRAPH, False)}
_SPARSE.children = {1: (TENSOR, False), 2: (TENSOR, False)}


def varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """Return the value of the varint at `at` (modulo 2**64, as protobuf reads it) and where it ends."""
    value = shift = 0
    start = at
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        if shift == 70:
            raise Malformed("a number of more than 10 bytes", start)
    raise Malformed("ends within a number", start, missing=int(end == len(data)))


def fields(data: Buffer, start: int, end: int) -> list[Field]:
    """Return the fields of the message in `data[start:end]`. Raises Malformed."""
    found = []
    at = start
    while at < end:
        begin = at
        tag = data[at]
        if tag < 0x80:
            at += 1
        else:
            tag, at = varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise Malformed(f"field number {number}", begin)
        value = at
        if wire_type == BYTES:
            length, value = varint(data, at, end)
            at = value + length
        elif wire_type == VARINT:
            _, at = varint(data, at, end)
        elif wire_type == FIXED32:
            at += 4
        elif wire_type == FIXED64:
            at += 8
        elif wire_type == GROUP:
            at = _group_end(data, begin, end)
        else:
            raise Malformed(f"wire type {wire_type}", begin)
        if at > end:
            missing = at - end if end == len(data) else 0
            raise Malformed(f"field {number} ends beyond its message", begin, missing)
        found.append(Field(number, wire_type, begin, value, at))
    return found


def _group_end(data: Buffer, at: int, end: int) -> int:
    """Return where the group (protobuf's oldest form of a message) whose tag is at `at` ends."""
    begin = at
    open_groups: list[int] = []
    while at < end:
        tag, at = varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == GROUP:
            open_groups.append(number)
            if len(open_groups) > MAX_DEPTH:
                raise Malformed(f"groups nested more than {MAX_DEPTH} deep", begin)
        elif wire_type == GROUP_END:
            if open_groups.pop() != number:
                raise Malformed(f"a group that ends as field {number}", begin)
            if not open_groups:
                return at
        elif wire_type == BYTES:
            length, at = varint(data, at, end)
            at += length
        elif wire_type == VARINT:
            _, at = varint(data, at, end)
        elif wire_type in (FIXED32, FIXED64):
            at += 4 if wire_type == FIXED32 else 8
        else:
            raise Malformed(f"wire type {wire_type}", begin)
    raise Malformed("a group without an end", begin)


def encoded(value: int) -> bytes:
    """Return a non-negative integer as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def header(number: int, length: int) -> bytes:
    """Return the tag and the length that precede a length-delimited field's `length` bytes."""
    return encoded(number << 3 | BYTES) + encoded(length)


def size(pieces: list[Piece]) -> int:
    """Return how many bytes `pieces` make."""
    return sum(len(piece) if isinstance(piece, bytes) else piece.length for piece in pieces)


def rebuild(
    data: Buffer,
    start: int,
    end: int,
    wants: Callable[[int, int], bool],
    replace: Callable[[int, int], list[Piece] | None],
    kind: Kind = MODEL,
    depth: int = 1,
) -> list[Piece] | None:
    """Return the message `data[start:end]` with some of its tensors replaced; None if none was.

    `wants(start, end)` says whether to look into a stretch; `replace(start, end)` gives a tensor's new bytes,
    or None to leave it. Raises Malformed.
    """
    if kind is TENSOR:
        return replace(start, end)
    if depth > MAX_DEPTH:
        raise Malformed(f"messages nested more than {MAX_DEPTH} deep", start)
    nested = [f for f in fields(data, start, end) if f.wire_type == BYTES and f.number in kind.children]
    single = [f.number for f in nested if not kind.children[f.number][1]]
    pieces: list[Piece] = []
    done = start
    for field in nested:
        child, repeated = kind.children[field.number]
        # A singular message that is there twice is to be merged, which is the parser's business.
        if not wants(field.value, field.end) or not (repeated or single.count(field.number) == 1):
            continue
        inner = rebuild(data, field.value, field.end, wants, replace, child, depth + 1)
        if inner is not None:
            pieces += (bytes(data[done : field.start]), header(field.number, size(inner)), *inner)
            done = field.end
    if not pieces:
        return None
    pieces.append(bytes(data[done:end]))
    return pieces
