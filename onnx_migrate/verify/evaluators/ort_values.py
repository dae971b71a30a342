"""Converts tensors of types that numpy lacks to and from ONNX Runtime: bfloat16, 8-bit floats, packed integers."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["from_ort_value", "is_foreign", "to_ort_value"]

_FOREIGN = "BFLOAT16 FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0 FLOAT4E2M1 INT4 UINT4 INT2 UINT2"
_ELEMENT_TYPES = {
    f"tensor({name.lower()})": TensorProto.DataType.Value(name)
    for name in _FOREIGN.split()
    if name in TensorProto.DataType.keys()  # noqa: SIM118 (not a dict)
}
"""By the name that ONNX Runtime gives a type; those that the installed onnx knows."""

_PER_BYTE = {"INT4": 2, "UINT4": 2, "FLOAT4E2M1": 2, "INT2": 4, "UINT2": 4}
"""Elements in a byte, the first in the lowest bits."""


def is_foreign(kind: str) -> bool:
    """Return whether numpy lacks a type that ONNX Runtime calls `kind`; onnx stands for it with a type of ml_dtypes."""
    return kind in _ELEMENT_TYPES


def to_ort_value(array: Any, kind: str) -> Any:
    """Return an input as an OrtValue."""
    from onnxruntime import OrtValue

    if not is_foreign(kind):
        return OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
    element = _ELEMENT_TYPES[kind]
    _numpy_type(element)
    bits = np.ascontiguousarray(array).view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
    return OrtValue.ortvalue_from_numpy_with_onnx_type(_packed(bits, _per_byte(element)), element)


def from_ort_value(value: Any) -> Any:
    """Return a copy of an output as onnx represents it in numpy."""
    kind = value.data_type()
    if not is_foreign(kind):
        return value.numpy()
    element = _ELEMENT_TYPES[kind]
    dtype, shape = _numpy_type(element), tuple(value.shape())
    per_byte = _per_byte(element)
    size = -(-prod(shape) // per_byte) * dtype.itemsize
    raw = ctypes.string_at(value._ortvalue.data_ptr(), size) if size else b""
    return _unpacked(np.frombuffer(raw, np.uint8), per_byte, dtype, shape)


def _numpy_type(element: int) -> np.dtype[Any]:
    """Return the NumPy type that represents an element type in onnx.

    Raises TypeError if that type belongs to another element type.
    """
    dtype = helper.tensor_dtype_to_np_dtype(element)
    if dtype in (np.float32, np.int8, np.uint8):
        name = TensorProto.DataType.Name(element)
        raise TypeError(
            f"onnx {onnx.__version__} represents {name} by {dtype} in NumPy; onnx 1.19 and later do not"
        )
    return dtype


def _per_byte(element: int) -> int:
    return _PER_BYTE.get(TensorProto.DataType.Name(element), 1)


def _packed(bits: Array, per_byte: int) -> Array:
    """Return an array of the same shape whose first bytes hold the elements, as many elements in one byte as fit."""
    if per_byte == 1:
        return bits
    width = 8 // per_byte
    flat = np.zeros(-(-bits.size // per_byte) * per_byte, np.uint8)
    flat[: bits.size] = bits.reshape(-1) & ((1 << width) - 1)
    shifts = np.arange(per_byte, dtype=np.uint8) * width
    packed = np.zeros(bits.size, np.uint8)
    packed[: flat.size // per_byte] = np.bitwise_or.reduce(flat.reshape(-1, per_byte) << shifts, axis=1)
    return packed.reshape(bits.shape)


def _unpacked(raw: Array, per_byte: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    if per_byte == 1:
        return raw.view(dtype).reshape(shape).copy()
    width = 8 // per_byte
    shifts = np.arange(per_byte, dtype=np.uint8) * width
    elements = ((raw[:, None] >> shifts) & ((1 << width) - 1)).reshape(-1)[: prod(shape)].astype(np.uint8)
    if dtype.name.startswith("int"):
        signed = (elements << (8 - width)).view(np.int8) >> (8 - width)
        return signed.reshape(shape).astype(dtype)
    return elements.view(dtype).reshape(shape)
