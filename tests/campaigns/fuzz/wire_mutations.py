"""Changes to the bytes of a model that keep most of protobuf's wire format, so that they reach the fields inside."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

__all__ = ["mutate_bytes"]

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)

Item = tuple[int, int, bytes]
"""A field: its number, its wire type, and its value without tag and length."""


def mutate_bytes(rng: Random, data: bytes) -> bytes:
    """Return bytes with one to three changes, most of them to fields at some depth, some to any byte."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        data = _anywhere(rng, data) if rng.random() < 0.25 else _inside(rng, data)
    return data


def _anywhere(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    length = rng.choice((1, 1, 2, 4, 16, 100))
    return rng.choice((
        lambda: data[:at],
        lambda: data[:at] + bytes([data[at % max(len(data), 1)] ^ 1 << rng.randrange(8)] if data else []) + data[at + 1 :],
        lambda: data[:at] + rng.randbytes(length) + data[at:],
        lambda: data[:at] + data[at + length :],
        lambda: data[:at] + data[at : at + length] * 2 + data[at + length :],
        lambda: data + rng.choice((b"\0", b"\n", data, data[:at], rng.randbytes(length))),
        lambda: data[:at] + b"\xff" * length + data[at + length :],
    ))()  # fmt: skip


def _inside(rng: Random, data: bytes, depth: int = 0) -> bytes:
    """Change one field of a message, or of a message in it; what does not parse is changed anywhere."""
    items = _parse(data)
    if not items:
        return _anywhere(rng, data)
    place = rng.randrange(len(items))
    number, wire_type, value = items[place]
    if wire_type == _BYTES and depth < 12 and rng.random() < 0.75 and _parse(value):
        items[place] = (number, wire_type, _inside(rng, value, depth + 1))
        return b"".join(map(_written, items))
    parts = [_written(item) for item in items]
    parts[place] = rng.choice(_CHANGES)(rng, items[place])
    if rng.random() < 0.1:
        other = rng.randrange(len(parts))
        parts[place], parts[other] = parts[other], parts[place]
    return b"".join(parts)


def _parse(data: bytes) -> list[Item]:
    """Return the fields of a message; nothing where the bytes are none."""
    items, at = [], 0
    while at < len(data):
        tag, at = _read(data, at)
        number, wire_type = tag >> 3, tag & 7
        if at < 0 or not number:
            return []
        if wire_type == _VARINT:
            _value, end = _read(data, at)
        elif wire_type == _BYTES:
            length, at = _read(data, at)
            end = at + length if at >= 0 else -1
        elif wire_type in (_FIXED64, _FIXED32):
            end = at + (8 if wire_type == _FIXED64 else 4)
        else:
            return []
        if end < 0 or end > len(data):
            return []
        items.append((number, wire_type, data[at:end]))
        at = end
    return items


def _read(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while 0 <= at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


def _varint(value: int, extra: int = 0) -> bytes:
    """Return a varint, with `extra` bytes more than it needs."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    for _ in range(extra):
        out[-1] |= 0x80
        out.append(0)
    return bytes(out)


def _written(item: Item, *, tag_extra: int = 0, length_extra: int = 0, length: int | None = None) -> bytes:
    number, wire_type, value = item
    size = _varint(len(value) if length is None else length, length_extra) if wire_type == _BYTES else b""
    return _varint(number << 3 | wire_type, tag_extra) + size + value


def _wire_type(rng: Random, item: Item) -> bytes:
    """Write the value with another wire type, as a field that a parser does not know, or cannot read."""
    return (
        _varint(item[0] << 3 | rng.randrange(8))
        + (_varint(len(item[2])) if rng.random() < 0.5 else b"")
        + item[2]
    )


def _as_group(rng: Random, item: Item) -> bytes:
    end = item[0] if rng.random() < 0.8 else item[0] + 1
    return (
        _varint(item[0] << 3 | _GROUP)
        + item[2]
        + (_varint(end << 3 | _GROUP_END) if rng.random() < 0.9 else b"")
    )


def _unknown(rng: Random, item: Item) -> bytes:
    number = rng.choice((100, 1000, 2**28, 2**29 - 1, 2**29, 0, 19000))
    value = rng.choice((b"abc", b"", b"\x08\x01"))
    added = rng.choice((
        _written((number, _BYTES, value)), _written((number, _FIXED32, b"1234")), _written((number, _FIXED64, b"12345678")),
        _written((number, _VARINT, b"\x07")), _varint(number << 3 | _GROUP) + value + _varint(number << 3 | _GROUP_END),
    ))  # fmt: skip
    return rng.choice((added + _written(item), _written(item) + added))


def _overlong(rng: Random, item: Item) -> bytes:
    return _written(
        item, tag_extra=rng.choice((0, 1, 3, 4, 5, 9)), length_extra=rng.choice((0, 1, 4, 5, 9, 10))
    )


def _wrong_length(rng: Random, item: Item) -> bytes:
    size = len(item[2])
    return _written(
        item, length=rng.choice((size + 1, max(size - 1, 0), 0, 2**31 - 1, 2**31, 2**32, 2**63, 2**64 - 1))
    )


def _repeated(rng: Random, item: Item) -> bytes:
    """Write a field twice; parsers merge singular messages and keep the last of other singular fields."""
    return _written(item) * rng.choice((2, 2, 3))


def _in_pieces(rng: Random, item: Item) -> bytes:
    """Write a message as two that a parser merges, or a packed list as two."""
    inner = _parse(item[2]) if item[1] == _BYTES else []
    cut = rng.randrange(len(inner) + 1)
    if inner:
        halves = (inner[:cut], inner[cut:])
        return b"".join(_written((item[0], _BYTES, b"".join(map(_written, half)))) for half in halves)
    place = rng.randrange(len(item[2]) // 8 + 1) * 8
    return _written((item[0], item[1], item[2][:place])) + _written((item[0], item[1], item[2][place:]))


def _unpacked(rng: Random, item: Item) -> bytes:
    """Write a packed list one by one, as numbers of one of the sizes; and a single number as a packed list."""
    number, wire_type, value = item
    if wire_type != _BYTES:
        return _written((number, _BYTES, value * rng.choice((0, 1, 2))))
    if rng.random() < 0.4:
        return b"".join(
            _written((number, _FIXED32, value[at : at + 4])) for at in range(0, len(value) // 4 * 4, 4)
        )
    if rng.random() < 0.5:
        return b"".join(
            _written((number, _FIXED64, value[at : at + 8])) for at in range(0, len(value) // 8 * 8, 8)
        )
    out, at = [], 0
    while at < len(value):
        start, (_, at) = at, _read(value, at)
        if at < 0:
            break
        out.append(_written((number, _VARINT, value[start:at])))
    return b"".join(out)


def _renumbered(rng: Random, item: Item) -> bytes:
    return _written((rng.randint(1, 25), item[1], item[2]))


def _dropped(rng: Random, item: Item) -> bytes:
    return b""


def _nested(rng: Random, item: Item) -> bytes:
    """Nest a message in itself, to below and above the depth that parsers take."""
    data = item[2]
    for _ in range(rng.choice((2, 20, 45, 60, 95, 105, 300))):
        data = _written((item[0], _BYTES, data))
    return _written((item[0], _BYTES, data))


def _not_utf8(rng: Random, item: Item) -> bytes:
    value = rng.choice(
        (b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"a\0b", b"\xf4\x90\x80\x80", b"\xe2\x80\xae")
    )
    return _written((item[0], _BYTES, value))


_CHANGES: tuple[Callable[[Random, Item], bytes], ...] = (
    _wire_type, _as_group, _unknown, _unknown, _overlong, _wrong_length, _repeated, _in_pieces, _in_pieces, _unpacked, _unpacked,
    _renumbered, _dropped, _nested, _not_utf8,
)  # fmt: skip
