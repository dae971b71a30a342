"""Splitting a serialised model into its structure and references to its large payloads."""

from __future__ import annotations

from collections.abc import Callable

from onnx import TensorProto

from onnx_migrate.files.wire.protobuf import BYTES, VARINT, Buffer, Piece, fields, rebuild, varint
from onnx_migrate.model.weights import INLINE_LIMIT, has_type, refer

__all__ = ["split"]

_NUMBER = {name: number for number, name in ((4, "float_data"), (9, "raw_data"), (10, "double_data"))}
_NAME = {number: name for name, number in _NUMBER.items()}
_ALL_DATA = {4, 5, 6, 7, 9, 10, 11}
_DATA_TYPE, _EXTERNAL_DATA, _DATA_LOCATION = 2, 13, 14


def split(data: Buffer, keep: Callable[[int, int, str, bytes], tuple[str, int]]) -> bytes:
    """Return the bytes of the model in `data`, each payload of more than INLINE_LIMIT bytes made a reference.

    `keep(offset, length, field, marks)` is told of each, as in `FilePayload`, and answers with the location
    and offset to refer to it by. Raises Malformed where `data` is not protobuf's wire format; only stretches
    that could hold a large payload are looked at, the rest is for protobuf's parser to judge.
    """

    def replace(start: int, end: int) -> list[Piece] | None:
        found = fields(data, start, end)
        payloads = [f for f in found if f.number in _ALL_DATA]
        if len(payloads) != 1:
            return None
        (payload,) = payloads
        length = payload.end - payload.value
        if payload.wire_type != BYTES or payload.number not in _NAME or length <= INLINE_LIMIT:
            return None
        data_type = location = 0
        for f in found:
            if f.wire_type == VARINT and f.number in (_DATA_TYPE, _DATA_LOCATION):
                value, _ = varint(data, f.value, f.end)
                data_type, location = (value, location) if f.number == _DATA_TYPE else (data_type, value)
        name = _NAME[payload.number]
        whole = length % {"raw_data": 1, "float_data": 4, "double_data": 8}[name] == 0
        if location == TensorProto.EXTERNAL or data_type in (0, TensorProto.STRING):
            return None
        if not (whole and has_type(name, data_type)):
            return None
        rest, marks = bytearray(), bytearray()
        for f in found:
            if f is not payload:
                # A field of that number and another wire type is unknown to protobuf and stays.
                aside = (f.number, f.wire_type) in ((_EXTERNAL_DATA, BYTES), (_DATA_LOCATION, VARINT))
                (marks if aside else rest).extend(data[f.start : f.end])
        reference = TensorProto()
        ordered = TensorProto.FromString(bytes(marks)).SerializeToString() if marks else b""
        refer(reference, *keep(payload.value, length, name, ordered), length)
        return [bytes(rest), reference.SerializeToString()]

    pieces = rebuild(data, 0, len(data), lambda start, end: end - start > INLINE_LIMIT, replace)
    if pieces is None:
        return bytes(data[:])
    return b"".join(piece for piece in pieces if isinstance(piece, bytes))
