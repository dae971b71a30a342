"""Assembles the bytes of a model file from a structure and references to its payloads."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import onnx
from onnx import TensorProto

from onnx_migrate.files.wire.protobuf import BYTES, encode_varint, header, parse_fields
from onnx_migrate.files.wire.rebuild import Piece, rebuild
from onnx_migrate.model.payloads import Payload, has_type
from onnx_migrate.model.tensor_fields import DATA_FIELDS
from onnx_migrate.model.weights import mark_external

__all__ = ["ExternalLocation", "assemble"]


class ExternalLocation(NamedTuple):
    """Where a payload is in a file of external data: the file relative to the model's folder, offset and length."""

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
_EXTERNAL_DATA = TensorProto.DESCRIPTOR.fields_by_name["external_data"].number


def assemble(
    proto: onnx.ModelProto, place: Callable[[TensorProto], Payload | ExternalLocation | None]
) -> list[Piece]:
    """Return the pieces of `proto` as a file, in the order in which protobuf's own serialiser writes them.

    `place` is called with each tensor marked EXTERNAL. It returns the payload to write into the tensor, or the place in
    a file of external data to refer to, or None to leave the reference as it is.
    """
    data = proto.SerializeToString()
    references = [match.start() for match in _REFERENCE.finditer(data)]

    def has_reference(start: int, end: int) -> bool:
        return bisect_left(references, start) < bisect_left(references, end)

    def replace(start: int, end: int) -> list[Piece] | None:
        tensor = TensorProto.FromString(data[start:end])
        if tensor.data_location != TensorProto.EXTERNAL:
            return None
        answer = place(tensor)
        if answer is None:
            return None
        for name in ("external_data", "data_location", "raw_data"):
            tensor.ClearField(name)
        if isinstance(answer, ExternalLocation):
            mark_external(tensor, *answer)
            return [tensor.SerializeToString()]
        return _with_payload(tensor, answer)

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
