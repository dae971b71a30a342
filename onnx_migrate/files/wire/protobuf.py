"""Protobuf's wire format: reading the fields of a message without its schema, and encoding tags and lengths.

Knows nothing of ONNX. Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, overload

__all__ = [
    "BYTES",
    "FIXED32",
    "FIXED64",
    "GROUP",
    "GROUP_END",
    "MAX_DEPTH",
    "MOST_FIELDS",
    "VARINT",
    "Buffer",
    "Field",
    "Malformed",
    "TooManyFields",
    "decode_varint",
    "encode_unknown",
    "encode_varint",
    "header",
    "parse_fields",
]

VARINT, FIXED64, BYTES, GROUP, GROUP_END, FIXED32 = range(6)
"""Wire types: the low three bits of a tag. BYTES is LEN in the specification, GROUP is SGROUP, GROUP_END is EGROUP."""

MAX_DEPTH = 100
"""Maximum depth of nested messages: the default recursion limit of protobuf's own parsers."""


MOST_FIELDS = 2_500_000
"""Limit of the fields of one message: each field takes at least 2 bytes of a file, and 200 as an object."""


class Buffer(Protocol):
    """bytes, a memoryview of bytes, or a `FileBuffer`."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: int, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> bytes | memoryview: ...


class Malformed(Exception):
    """Bytes that are not a protobuf message: `reason` says what is wrong at byte `at`.

    `missing` is how many bytes the whole buffer lacks for the field at `at` to end in it, 0 where the buffer is not cut.
    """

    def __init__(self, reason: str, at: int, missing: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at
        self.missing = missing


class TooManyFields(Malformed):
    """A message has more than `MOST_FIELDS` fields."""


class Field(NamedTuple):
    """One field of a message, by offsets into the buffer: its tag begins at `start`, its value spans `value` to `end`."""

    number: int
    wire_type: int
    start: int
    value: int
    end: int


def decode_varint(data: Buffer, at: int, end: int) -> tuple[int, int]:
    """Return the value of the varint at `at`, modulo 2**64 as in protobuf, and the offset after it. Raises Malformed."""
    value = shift = 0
    start = at
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7
        # A number of 64 bits has at most ten groups of seven.
        if shift == 70:
            raise Malformed("a varint of more than 10 bytes", start)
    raise Malformed("the data ends within a varint", start, missing=int(end == len(data)))


def parse_fields(data: Buffer, start: int, end: int) -> list[Field]:
    """Return the fields of the message in `data[start:end]`. Raises Malformed, TooManyFields for more than MOST_FIELDS."""
    fields = []
    at = start
    while at < end:
        begin = at
        tag = data[at]
        # Most tags and lengths fit one byte, so the call of the decoder is saved.
        if tag < 0x80:
            at += 1
        else:
            tag, at = decode_varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number < 1 << 29:
            raise Malformed(f"the invalid field number {number}", begin)
        value = at
        if wire_type == BYTES:
            if at < end and data[at] < 0x80:
                length, value = data[at], at + 1
            else:
                length, value = decode_varint(data, at, end)
            at = value + length
        elif wire_type == VARINT:
            _, at = decode_varint(data, at, end)
        elif wire_type == FIXED32:
            at += 4
        elif wire_type == FIXED64:
            at += 8
        elif wire_type == GROUP:
            at = _group_end(data, begin, end)
        else:
            raise Malformed(f"the invalid wire type {wire_type}", begin)
        if at > end:
            # More bytes may follow only if the message ends where the file does.
            missing = at - end if end == len(data) else 0
            raise Malformed(f"field {number} is longer than the message it is in", begin, missing)
        fields.append(Field(number, wire_type, begin, value, at))
        if len(fields) > MOST_FIELDS:
            raise TooManyFields(f"a message of more than {MOST_FIELDS:,} fields", start)
    return fields


def _group_end(data: Buffer, at: int, end: int) -> int:
    """Return the offset after the group (a deprecated form of nested message) whose start tag is at `at`."""
    begin = at
    open_groups: list[int] = []
    while at < end:
        tag, at = decode_varint(data, at, end)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == GROUP:
            open_groups.append(number)
            if len(open_groups) > MAX_DEPTH:
                raise Malformed(f"groups nested more than {MAX_DEPTH} deep", begin)
        elif wire_type == GROUP_END:
            # Groups must be closed in reverse order.
            if open_groups.pop() != number:
                raise Malformed(f"a group whose end tag has another field number, {number}", begin)
            if not open_groups:
                return at
        elif wire_type == BYTES:
            length, at = decode_varint(data, at, end)
            at += length
        elif wire_type == VARINT:
            _, at = decode_varint(data, at, end)
        elif wire_type in (FIXED32, FIXED64):
            at += 4 if wire_type == FIXED32 else 8
        else:
            raise Malformed(f"the invalid wire type {wire_type}", begin)
    raise Malformed("a group without an end tag", begin)


def encode_varint(value: int) -> bytes:
    """Return a non-negative integer as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def header(number: int, length: int) -> bytes:
    """Return the tag and the length that precede a length-delimited field's `length` bytes."""
    return encode_varint(number << 3 | BYTES) + encode_varint(length)


def encode_unknown(fields: Any) -> bytes:
    """Return the wire bytes of a protobuf `UnknownFieldSet`, in order."""
    out = bytearray()
    for field in fields:
        out += encode_varint(field.field_number << 3 | field.wire_type)
        if field.wire_type == VARINT:
            out += encode_varint(field.data)
        elif field.wire_type == BYTES:
            out += encode_varint(len(field.data)) + field.data
        elif field.wire_type == GROUP:
            # A group ends with a tag of its own.
            out += encode_unknown(field.data) + encode_varint(field.field_number << 3 | GROUP_END)
        else:
            out += field.data.to_bytes({FIXED32: 4, FIXED64: 8}[field.wire_type], "little")
    return bytes(out)
