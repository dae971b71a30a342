"""Takes the large payloads out of a serialised model, by reference, and puts them back, without parsing the rest.

Only messages that can contain a tensor are parsed. All other bytes, unknown fields included, are copied unchanged.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import onnx
from onnx import TensorProto

from onnx_migrate.files.wire.protobuf import (
    BYTES,
    MAX_DEPTH,
    VARINT,
    Buffer,
    Malformed,
    TooManyFields,
    decode_varint,
    encode_varint,
    header,
    parse_fields,
)
from onnx_migrate.model.payloads import Payload, has_type
from onnx_migrate.model.tensor_fields import DATA_FIELDS, MODEL, TENSOR, MessageType
from onnx_migrate.model.weights import INLINE_LIMIT, mark_external

__all__ = ["ExternalLocation", "Piece", "assemble", "rebuild", "split", "total_size"]

Piece = bytes | Payload
"""A part of a file to write: bytes, or a reference to bytes elsewhere."""


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
    # Fields that cannot hold a tensor are copied unread.
    nested = [f for f in parse_fields(data, start, end) if f.wire_type == BYTES and f.number in declared]
    singular = [f.number for f in nested if not declared[f.number].repeated]
    pieces: list[Piece] = []
    copied_end = start
    for field in nested:
        if not may_change(field.value, field.end) or singular.count(field.number) > 1:
            continue  # a parser merges singular messages that occur twice, so neither is the whole message
        inner_type = declared[field.number].message_type
        inner = rebuild(data, field.value, field.end, may_change, replace, inner_type, depth + 1)
        if inner is not None:
            pieces += (bytes(data[copied_end : field.start]), header(field.number, total_size(inner)), *inner)
            copied_end = field.end
    if not pieces:
        return None
    pieces.append(bytes(data[copied_end:end]))
    return pieces


ELEMENT_SIZE = {"raw_data": 1, "float_data": 4, "double_data": 8}
"""Bytes of an element on the wire in the fields whose bytes are the tensor's raw data (see `has_type`)."""

_NAMES = {number: name for name, number in DATA_FIELDS.items()}
_DATA_TYPE, _EXTERNAL_DATA, _DATA_LOCATION = (
    TensorProto.DESCRIPTOR.fields_by_name[name].number
    for name in ("data_type", "external_data", "data_location")
)


def split(data: Buffer, keep: Callable[[int, int, str, bytes], tuple[str, int]]) -> bytes:
    """Return the bytes of the model in `data`, each payload of more than INLINE_LIMIT bytes replaced by a reference.

    `keep(offset, length, field, extra_fields)` is called for each such payload, with arguments as in `FilePayload`, and
    returns the location and offset of the reference. Raises Malformed where `data` is not protobuf's wire format. Only
    messages that are long enough to contain a large payload are checked; protobuf's parser checks the rest.
    """

    def replace(start: int, end: int) -> list[Piece] | None:
        try:
            fields = parse_fields(data, start, end)
        except TooManyFields:  # elements that are not packed: protobuf's own parser reads them
            return None
        payloads = [f for f in fields if f.number in _NAMES]
        if len(payloads) != 1:
            return None
        (payload,) = payloads
        name, length = _NAMES[payload.number], payload.end - payload.value
        if payload.wire_type != BYTES or name not in ELEMENT_SIZE or length <= INLINE_LIMIT:
            return None
        data_type = location = 0
        for f in fields:
            if f.wire_type == VARINT and f.number in (_DATA_TYPE, _DATA_LOCATION):
                value, _ = decode_varint(data, f.value, f.end)
                data_type, location = (value, location) if f.number == _DATA_TYPE else (data_type, value)
        if location == TensorProto.EXTERNAL or data_type in (0, TensorProto.STRING):
            return None
        if length % ELEMENT_SIZE[name] or not has_type(name, data_type):
            return None
        rest, extra = bytearray(), bytearray()
        for f in fields:
            if f is not payload:
                # A field of that number and another wire type is unknown to protobuf and stays.
                is_extra = (f.number, f.wire_type) in ((_EXTERNAL_DATA, BYTES), (_DATA_LOCATION, VARINT))
                (extra if is_extra else rest).extend(data[f.start : f.end])
        reference = TensorProto()
        ordered = TensorProto.FromString(bytes(extra)).SerializeToString() if extra else b""
        mark_external(reference, *keep(payload.value, length, name, ordered), length)
        return [bytes(rest), reference.SerializeToString()]

    pieces = rebuild(data, 0, len(data), lambda start, end: end - start > INLINE_LIMIT, replace)
    if pieces is None:
        return bytes(data[:])
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))


class ExternalLocation(NamedTuple):
    """The position of a payload in a file of external data: the file relative to the model's folder, offset and length."""

    location: str
    offset: int
    length: int


_ENTRY = onnx.StringStringEntryProto.DESCRIPTOR.fields_by_name
# How each reference begins on the wire: the key of the first entry of external_data, then the tag of its value.
_REFERENCE = re.compile(
    re.escape(header(_ENTRY["key"].number, len(b"location")) + b"location")
    + re.escape(encode_varint(_ENTRY["value"].number << 3 | BYTES))
)
_TENSOR_FIELDS = TensorProto.DESCRIPTOR.fields_by_number


def assemble(
    proto: onnx.ModelProto, place: Callable[[TensorProto], Payload | ExternalLocation | None]
) -> list[Piece]:
    """Return the pieces of `proto` as a file, in the order in which protobuf's own serialiser writes them.

    `place` is called with each tensor marked EXTERNAL. It returns the payload to write into the tensor, or the position in a
    file of external data for the new reference. None leaves the reference unchanged.
    """
    data = proto.SerializeToString()
    # A search in the bytes finds the few tensors with references.
    references = [match.start() for match in _REFERENCE.finditer(data)]

    def has_reference(start: int, end: int) -> bool:
        # Only messages that contain a reference are parsed.
        return bisect_left(references, start) < bisect_left(references, end)

    def replace(start: int, end: int) -> list[Piece] | None:
        tensor = TensorProto.FromString(data[start:end])
        # The bytes may occur in other places by chance.
        if tensor.data_location != TensorProto.EXTERNAL:
            return None
        answer = place(tensor)
        if answer is None:
            return None
        # The new form of the data replaces the old one.
        for name in ("external_data", "data_location", "raw_data"):
            tensor.ClearField(name)
        if isinstance(answer, ExternalLocation):
            mark_external(tensor, *answer)
            return [tensor.SerializeToString()]
        return _with_payload(tensor, answer)

    # Without references, the bytes are complete.
    return rebuild(data, 0, len(data), has_reference, replace) or [data]


def _with_payload(tensor: TensorProto, payload: Payload) -> list[Piece]:
    """Return the pieces of a tensor that has no data, with `payload` inserted where its field belongs."""
    number = DATA_FIELDS[payload.field if has_type(payload.field, tensor.data_type) else "raw_data"]
    data = tensor.SerializeToString()
    before, after = _insertion_point(data, number), _insertion_point(data, _EXTERNAL_DATA)
    return [
        data[:before] + header(number, payload.length),
        payload,
        data[before:after] + payload.extra_fields + data[after:],
    ]


def _insertion_point(data: bytes, number: int) -> int:
    """Return the offset of field `number` in a serialised tensor: serialisers write fields by number, unknown ones last."""
    at = last = 0
    for field in parse_fields(data, 0, len(data)):
        if not last <= field.number < number or field.number not in _TENSOR_FIELDS:
            break
        at, last = field.end, field.number
    return at
