"""Measures the error of a value between two runs, and the size of its numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.model.tensors import numbers
from onnx_migrate.verify.evaluators.strict import LARGEST_HALF

Array = np.ndarray[Any, Any]

__all__ = [
    "CEILING",
    "FROM_DOUBLE",
    "FROM_DOUBLE_CEILING",
    "ROUNDING",
    "SHARE",
    "as_masked",
    "error_of",
    "fed",
    "in_float",
    "is_masked",
    "largest_of",
    "magnitudes",
    "wide",
]

ROUNDING: dict[int, float] = {TensorProto.FLOAT16: 5e-3, TensorProto.BFLOAT16: 2e-2, TensorProto.FLOAT: 5e-3}
"""The error that an output may have in each type, as a share of its largest value."""

FROM_DOUBLE = 1e-4
"""The same for a model of float64 in float32."""

CEILING: dict[int, float] = {TensorProto.FLOAT16: 0.05, TensorProto.BFLOAT16: 0.1, TensorProto.FLOAT: 0.05}
"""The largest limit, as a share of the output's largest value: beyond it a fault looks like rounding."""

FROM_DOUBLE_CEILING = 1e-2
"""The same for a model of float64 in float32."""

SHARE = 0.005
"""Share of the elements of an integer or boolean output that may differ."""

_ALIKE = 1 / 16
"""The largest difference between the numbers of a mask that is added to others, as a share of its largest number."""


def error_of(expected: Any, given: Any, scale: float = 0.0) -> float:
    """Return the error of a value as a share of the largest expected magnitude, or of `scale` if that is larger.

    The error is infinite if one of the two is NaN or infinite and the other is not. For integers and booleans it is the share
    of elements that differ.
    """
    if isinstance(expected, list):
        if len(expected) != len(given):
            return float("inf")
        pairs = zip(expected, given, strict=True)
        return max((error_of(value, other, scale) for value, other in pairs), default=0.0)
    if not isinstance(expected, np.ndarray) or not isinstance(given, np.ndarray):
        return 0.0 if expected is given else float("inf")
    if expected.shape != given.shape:
        return float("inf")
    if not expected.size:
        return 0.0
    if expected.dtype.kind not in "fc":
        share = float(np.mean(_differ(expected, given)))
        return 0.0 if share <= SHARE else share
    with np.errstate(invalid="ignore", over="ignore"):
        top, off = float(np.abs(expected).max()), float(np.abs(given - expected).max())
    # Most outputs are finite and have no mask, and need none of the copies below.
    if top <= LARGEST_HALF and math.isfinite(off):
        return off / (max(top, scale) or 1.0)
    finite = np.isfinite(expected)
    if not np.array_equal(np.isnan(expected), np.isnan(given)):
        return float("inf")
    # NaN is not equal to itself, so the comparison of equal elements must exclude it.
    infinite = ~finite & ~np.isnan(expected)
    if not np.array_equal(given[infinite], expected[infinite]) or not np.all(np.isfinite(given[finite])):
        return float("inf")
    return _error_of_numbers(expected[finite].astype(np.float64), given[finite].astype(np.float64), scale)


def _differ(expected: Array, given: Array) -> Array:
    """Return which elements differ. Bytes, for example pixels of an image, differ if they do by more than 1."""
    if expected.dtype == np.uint8 and given.dtype == np.uint8:
        # A plain difference of unsigned bytes would wrap around below 0.
        return np.maximum(expected, given) - np.minimum(expected, given) > 1
    return np.asarray(expected != given)


def _error_of_numbers(expected: Array, given: Array, scale: float) -> float:
    """Return the error of finite numbers. A mask's numbers have an error of their own, because they would hide all others."""
    sizes, off = np.abs(expected), np.abs(given - expected)
    huge = sizes > LARGEST_HALF
    top = float(sizes[~huge].max(initial=0.0)) or float(sizes.max(initial=0.0))
    others = float(off[~huge].max(initial=0.0)) / (max(top, scale) or 1.0)
    return max(others, float((off[huge] / sizes[huge]).max(initial=0.0)))


def largest_of(value: Any) -> float:
    """Return the largest finite magnitude that no mask holds, in an output of floats; 0 if there is none."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return 0.0
    sizes = np.abs(value)
    return float(sizes[sizes <= LARGEST_HALF].max(initial=0.0))


def magnitudes(value: Any) -> tuple[float, float]:
    """Return the largest and the smallest magnitude but 0 of the finite elements of a value; zeros if it has none."""
    sizes = np.abs(value if isinstance(value, np.ndarray) else 0).astype(np.float32, copy=False).reshape(-1)
    top = float(sizes.max(initial=0.0))
    if not math.isfinite(top):
        sizes = sizes[np.isfinite(sizes)]
        top = float(sizes.max(initial=0.0))
    if not top:
        return 0.0, 0.0
    # Bits of positive floats have the order of integers, and 0 less 1 is the largest: to mask zeros takes ten times as long.
    least = int((sizes.view(np.uint32) - np.uint32(1)).min()) + 1
    return top, float(np.uint32(least).view(np.float32))


def is_masked(values: Any) -> bool:
    """Return whether nothing is above 0, or the largest magnitudes are all negative and nearly the same."""
    top = magnitudes(values)[0]
    largest = values[np.isfinite(values) & (np.abs(values) >= top / 2)]
    return not np.any(values > 0) or bool(np.all(largest < 0) and np.ptp(largest) <= top * _ALIKE)


def as_masked(expected: Any, given: Any) -> Any:
    """Return an inner value with a mask's numbers infinite if another type makes them infinite too, which is no error."""
    if not isinstance(expected, np.ndarray) or expected.dtype.kind != "f" or expected.shape != given.shape:
        return expected
    if not given.size or given.min() > -np.inf:
        return expected
    infinite = np.isneginf(given) & (expected <= -LARGEST_HALF)
    return np.where(infinite, given, expected) if infinite.any() and is_masked(expected) else expected


def fed(inputs: Mapping[str, Any], model: onnx.ModelProto) -> dict[str, Any]:
    """Return inputs in the element types that a model declares."""
    converted = dict(inputs)
    for value in model.graph.input:
        kind, array = value.type.tensor_type.elem_type, converted.get(value.name)
        if isinstance(array, np.ndarray) and kind in ROUNDING:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind)
            converted[value.name] = array if array.dtype == dtype else numbers(array).astype(dtype)
    return converted


def in_float(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of a run, with tensors of float16 and bfloat16 as float32."""
    return {name: wide(value) for name, value in run.items()}


def wide(value: Any) -> Any:
    """Return a value as float32 if it is a tensor of float16 or bfloat16."""
    array = numbers(value) if isinstance(value, np.ndarray) else value
    narrow = isinstance(array, np.ndarray) and array.dtype.itemsize == 2 and array.dtype.kind in "fV"
    return array.astype(np.float32) if narrow else array
