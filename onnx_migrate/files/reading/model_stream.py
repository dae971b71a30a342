"""Reads a model from a pipe into memory, and stops when the bytes cannot be a model: a pipe may have no end."""

from __future__ import annotations

from collections.abc import Callable

from onnx_migrate.errors import LoadError
from onnx_migrate.files.file_signatures import HEAD, may_be_model
from onnx_migrate.files.wire.protobuf import (
    BYTES,
    FIXED32,
    GROUP,
    GROUP_END,
    MAX_DEPTH,
    VARINT,
    Malformed,
    decode_varint,
)
from onnx_migrate.process import Limits

__all__ = ["read_model"]

_CHUNK = 1 << 20

_LONGEST_HEADER = 20
"""Maximum number of bytes of a field's tag and length, or of its tag and value."""


def read_model(read: Callable[[int], bytes], name: str, limit: int | None = None) -> bytearray:
    """Return the bytes of a model; `read` returns some bytes, up to a number of them, and none at the end.

    If the bytes are not those of a model, reading stops early, and the bytes so far are returned. Raises OSError, and
    LoadError, code `cannot-read`, if the model is larger than `limit`. By default this is half of the memory that a process may
    use.
    """
    limit = limit or (Limits().memory or 1 << 34) // 2
    data = bytearray()
    at = 0
    groups: list[int] = []
    while chunk := read(_CHUNK):
        data += chunk
        # The first bytes tell whether this is a model at all.
        if len(data) < HEAD:
            continue
        if at == 0 and not may_be_model(bytes(data[:HEAD])):
            return data
        try:
            at = _whole_fields(memoryview(data), at, groups)
        except Malformed:
            return data
        # A field announces its length before its bytes come.
        if max(at, len(data)) > limit:
            raise LoadError(
                f"{name} holds or announces more than {limit:,} bytes, which is too much for the memory",
                code="cannot-read",
                hint="write it to a file and give the path of that",
            )
    return data


def _whole_fields(data: memoryview, at: int, groups: list[int]) -> int:
    """Return the end of the first field that `data` holds only in part; a field begins at `at`.

    `groups` are the numbers of the groups that are open at `at`, the innermost last. Afterwards they are those of the result.
    Raises Malformed if there is no field.
    """
    while at < len(data) - _LONGEST_HEADER:
        tag, value = decode_varint(data, at, len(data))
        number, kind = tag >> 3, tag & 7
        # No valid field begins in this way.
        if not number or kind > FIXED32 or (kind == GROUP_END and groups[-1:] != [number]):
            raise Malformed("no field", at)
        if kind in (BYTES, VARINT):
            length, value = decode_varint(data, value, len(data))
            at = value + (length if kind == BYTES else 0)
        elif kind in (GROUP, GROUP_END):
            at = value
            if kind == GROUP_END:
                groups.pop()
            elif len(groups) == MAX_DEPTH:
                raise Malformed("groups are nested too deep", at)
            else:
                groups.append(number)
        else:
            at = value + (4 if kind == FIXED32 else 8)
    return at
