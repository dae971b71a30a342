"""Turning a structure into the bytes of a model file, payloads by reference."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

import onnx
from onnx import TensorProto

from onnx_migrate.files.to_proto import FIELD_NUMBER
from onnx_migrate.files.wire.protobuf import Piece, fields, header, rebuild
from onnx_migrate.model.weights import Payload, has_type, refer

__all__ = ["Elsewhere", "emit"]

Elsewhere = tuple[str, int, int]
"""Location, offset and length in a file of external data."""

# How every reference begins on the wire: external_data's key, then its value.
_MARKER = re.compile(rb"\x0a\x08location\x12")
_TENSOR_FIELDS = frozenset(TensorProto.DESCRIPTOR.fields_by_number)


def emit(proto: onnx.ModelProto, place: Callable[[TensorProto], Payload | Elsewhere | None]) -> list[Piece]:
    """Return the pieces of `proto` as a file, in the order protobuf's own serialiser would write them.

    `place` is asked of each tensor marked EXTERNAL and answers with the payload to write in its place, with
    where in an external file it shall be, or with None to leave the reference as it is.
    """
    data = proto.SerializeToString()
    marks = [match.start() for match in _MARKER.finditer(data)]

    def replace(start: int, end: int) -> list[Piece] | None:
        tensor = TensorProto.FromString(data[start:end])
        if tensor.data_location != TensorProto.EXTERNAL:
            return None
        answer = place(tensor)
        if answer is None:
            return None
        for name in ("external_data", "data_location", "raw_data"):
            tensor.ClearField(name)
        if isinstance(answer, tuple):
            refer(tensor, *answer)
            return [tensor.SerializeToString()]
        return _spliced(tensor, answer)

    return rebuild(
        data, 0, len(data), lambda start, end: bisect_left(marks, start) < bisect_left(marks, end), replace
    ) or [data]


def _spliced(tensor: TensorProto, payload: Payload) -> list[Piece]:
    """Return a tensor without data with `payload` at its place among the fields."""
    number = FIELD_NUMBER[payload.field if has_type(payload.field, tensor.data_type) else "raw_data"]
    data = tensor.SerializeToString()
    before, after = _place(data, number), _place(data, 13)  # 13: external_data, before data_location
    return [
        data[:before] + header(number, payload.length),
        payload,
        data[before:after] + payload.marks + data[after:],
    ]


def _place(data: bytes, number: int) -> int:
    """Return where field `number` belongs in a serialised tensor: fields ascend, unknown ones come last."""
    at = last = 0
    for field in fields(data, 0, len(data)):
        if not last <= field.number < number or field.number not in _TENSOR_FIELDS:
            break
        at, last = field.end, field.number
    return at
