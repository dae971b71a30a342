"""Tensors of types that numpy lacks, bfloat16 and 8-bit floats, into ONNX Runtime and out of it."""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto, helper

__all__ = ["from_ort_value", "is_foreign", "to_ort_value"]

_ELEMENT_TYPES = {
    "tensor(bfloat16)": TensorProto.BFLOAT16,
    "tensor(float8e4m3fn)": TensorProto.FLOAT8E4M3FN,
    "tensor(float8e4m3fnuz)": TensorProto.FLOAT8E4M3FNUZ,
    "tensor(float8e5m2)": TensorProto.FLOAT8E5M2,
    "tensor(float8e5m2fnuz)": TensorProto.FLOAT8E5M2FNUZ,
}
"""By the name that ONNX Runtime gives a type."""


def is_foreign(kind: str) -> bool:
    """Return whether numpy lacks a type that ONNX Runtime calls `kind`; onnx stands for it with a type of ml_dtypes."""
    return kind in _ELEMENT_TYPES


def to_ort_value(array: Any, kind: str) -> Any:
    """Return an input as an OrtValue; of a type that numpy lacks it shares the memory of `array`."""
    from onnxruntime import OrtValue

    if not is_foreign(kind):
        return OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
    bits = np.ascontiguousarray(array).view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
    return OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _ELEMENT_TYPES[kind])


def from_ort_value(value: Any) -> Any:
    """Return a copy of an output as onnx represents it in numpy."""
    kind = value.data_type()
    if not is_foreign(kind):
        return value.numpy()
    dtype = helper.tensor_dtype_to_np_dtype(_ELEMENT_TYPES[kind])
    shape = tuple(value.shape())
    size = prod(shape) * dtype.itemsize
    raw = ctypes.string_at(value._ortvalue.data_ptr(), size) if size else b""
    return np.frombuffer(raw, dtype).reshape(shape).copy()
