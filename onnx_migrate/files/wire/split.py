"""Splits a serialised model into its structure and references to its large payloads."""

from __future__ import annotations

from collections.abc import Callable

from onnx import TensorProto

from onnx_migrate.files.wire.protobuf import BYTES, VARINT, Buffer, TooManyFields, decode_varint, parse_fields
from onnx_migrate.files.wire.rebuild import Piece, rebuild
from onnx_migrate.model.payloads import has_type
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.model.weights import INLINE_LIMIT, mark_external

__all__ = ["split"]

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
