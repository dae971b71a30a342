"""TensorProto messages: finding all of a model, their size in bytes, the field that holds their data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.model.tensor_fields import ATTRIBUTE, MODEL, TENSOR, MessageType

__all__ = [
    "byte_size",
    "data_field",
    "has_type",
    "location_of",
    "mark_external",
    "numbers",
    "packed_bytes",
    "tensors",
]

_TYPES_OF_FIELD: dict[str, tuple[int, ...]] = {
    "float_data": (TensorProto.FLOAT, TensorProto.COMPLEX64),
    "double_data": (TensorProto.DOUBLE, TensorProto.COMPLEX128),
}
"""The element types whose raw data equals the bytes of a packed field (onnx.proto, comments of these fields); the other
packed fields are varints on the wire."""

_BITS = dict.fromkeys((2, 3, 9, 17, 18, 19, 20, 24), 8) | dict.fromkeys((4, 5, 10, 16), 16)
_BITS |= {
    1: 32,
    6: 32,
    12: 32,
    7: 64,
    11: 64,
    13: 64,
    14: 64,
    15: 128,
    21: 4,
    22: 4,
    23: 4,
    25: 2,
    26: 2,
    27: 6,
    28: 6,
}
"""Bits of one element by TensorProto.DataType (onnx.proto); numbers, since an older onnx lacks the newer names."""

_WITHOUT_TENSORS = frozenset(
    getattr(AttributeProto, name) for name in ("FLOAT", "INT", "STRING", "FLOATS", "INTS", "STRINGS")
)


def tensors(proto: onnx.ModelProto) -> Iterator[TensorProto]:
    """Yield every tensor of a model, wherever onnx.proto has a field for one: initializers, values and indices of
    sparse ones, attributes; of all graphs, sub-graphs, functions and training graphs."""
    found: list[TensorProto] = []
    _collect(proto, MODEL, found)
    return iter(found)


def _collect(message: Any, message_type: MessageType, found: list[TensorProto]) -> None:
    for field in message_type.tensor_fields.values():
        if field.repeated:
            inner = getattr(message, field.name)
        elif message.HasField(field.name):
            inner = (getattr(message, field.name),)
        else:
            continue
        kind = field.message_type
        if len(kind.tensor_fields) == 1:  # the attributes of all nodes are one sequence: there are many nodes
            (only,) = kind.tensor_fields.values()
            if only.repeated:
                inner, kind = chain.from_iterable(map(attrgetter(only.name), inner)), only.message_type
        if kind is TENSOR:
            found.extend(inner)
            continue
        for item in inner:
            # Attributes of numbers and text are skipped by their type; one without a type, as in IR version 1, is searched.
            if kind is not ATTRIBUTE or item.type not in _WITHOUT_TENSORS:
                _collect(item, kind, found)


def byte_size(dims: Sequence[int], data_type: int) -> int | None:
    """Return the bytes of raw data of a dense tensor, or None if the type or a dim is unknown.

    Elements of less than 8 bits are packed, and the last byte is padded (onnx.proto, `raw_data`).
    """
    if data_type not in _BITS or any(dim < 0 for dim in dims):
        return None
    elements = 1
    for dim in dims:
        elements *= dim
    return (elements * _BITS[data_type] + 7) // 8


def has_type(name: str, data_type: int) -> bool:
    """Return whether the bytes of data field `name` are the raw data of a tensor of `data_type`."""
    return name == "raw_data" or data_type in _TYPES_OF_FIELD[name]


def data_field(tensor: TensorProto) -> str | None:
    """Return the name of the field of a tensor in memory whose bytes are its raw data; None if there is none."""
    if tensor.HasField("raw_data"):
        return "raw_data"
    for name in _TYPES_OF_FIELD:
        if len(getattr(tensor, name)) and has_type(name, tensor.data_type):
            return name
    return None


def mark_external(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    """Mark `tensor` EXTERNAL and add the entries for `length` bytes of `location` from `offset`, in place."""
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def numbers(given: Any) -> np.ndarray[Any, Any]:
    """Return what `onnx.numpy_helper.to_array` gave, as numbers.

    Of types that NumPy lacks onnx before 1.19 gives the bits, in integers whose type has a mark such as ("bfloat16",); these
    are returned as floats.
    """
    array: np.ndarray[Any, Any] = np.asarray(given)
    marks = array.dtype.names
    if marks == ("bfloat16",):
        return (array.astype(np.uint32) << 16).view(np.float32)
    if marks == ("float4e2m1",):
        sizes = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
        return np.asarray(np.where(array & 8, -sizes[array & 7], sizes[array & 7]))
    if marks and marks[0].startswith(("e4m3", "e5m2")):
        convert = getattr(onnx.numpy_helper, f"float8{marks[0][:4]}_to_float32")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of onnx 1.18, which has no other way
            return np.asarray(
                convert(array.astype(np.uint8), fn="fn" in marks[0], uz=marks[0].endswith("uz"))
            )
    return array


def location_of(tensor: TensorProto) -> str:
    """Return the location that a tensor marked EXTERNAL names, an empty string if it names none."""
    return next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def packed_bytes(tensor: TensorProto, name: str) -> bytes:
    """Return the bytes of packed field `name`, little-endian.

    They are taken from the serialised tensor: a conversion to Python floats would quieten signalling NaNs.
    """
    number = TensorProto.DESCRIPTOR.fields_by_name[name].number
    before = TensorProto()
    for descriptor in TensorProto.DESCRIPTOR.fields:
        if descriptor.number >= number:
            continue
        value = getattr(tensor, descriptor.name)
        if hasattr(value, "extend"):
            getattr(before, descriptor.name).extend(value)
        elif tensor.HasField(descriptor.name):
            if descriptor.message_type is None:
                setattr(before, descriptor.name, value)
            else:
                getattr(before, descriptor.name).CopyFrom(value)
    length = len(getattr(tensor, name)) * (4 if name == "float_data" else 8)
    start = before.ByteSize() + 1 + (length.bit_length() + 6) // 7  # a tag of one byte, then the length
    return bytes(memoryview(tensor.SerializeToString())[start : start + length])
