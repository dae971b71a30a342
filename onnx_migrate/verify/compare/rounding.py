"""What rounding changes between two runs, and whether values from the same inputs differ by a kernel's rounding only."""

from __future__ import annotations

import numpy as np

from onnx_migrate.messages import count_of
from onnx_migrate.verify.compare.arrays import Array, differing_bits, is_float
from onnx_migrate.verify.compare.comparison import Difference, Rounding, finite_parts

__all__ = ["beyond_rounding", "rounding_between", "share_of_noise"]

_RARE = 100
"""Of so many elements of a type as coarse as float16, one may be rounded to the neighbouring number."""


def rounding_between(original: Array, result: Array) -> Rounding:
    """Return what rounding changed between two runs, whose values have the same shape."""
    if is_float(original) and original.dtype == result.dtype:
        return Rounding(Difference.between(original, result).largest, differing_bits(original, result))
    elements = int(np.count_nonzero(original != result))
    steps = (
        np.abs(original.astype(np.float64) - result.astype(np.float64))
        if original.dtype.kind in "iu"
        else 0.0
    )
    return Rounding(float(np.max(steps, initial=0.0)), elements)


def share_of_noise(original: Array, result: Array) -> float:
    """Return the share of a discrete value's elements that changed, 0 where it is small enough to be ties.

    A byte of a quantised model that moves by one step is no change.
    """
    if is_float(original):
        return 0.0
    unequal = np.asarray(original != result)
    if original.dtype in (np.int8, np.uint8):
        unequal = np.abs(original.astype(np.int16) - result.astype(np.int16)) > 1
    changed = int(np.count_nonzero(unequal))
    return changed / original.size if changed > max(1, original.size // _RARE) else 0.0


def beyond_rounding(original: Array, result: Array, ulps: float) -> str:
    """Describe how a value differs by more than a kernel may round differently; "" where it does not.

    Sums in another order move an element by a few units in the last place of the largest: `ulps` of them are allowed.
    In float16 kernels compute in float32 and round once, so that an element is at most one unit off, and rarely.
    Integers must be equal.
    """
    if original.shape != result.shape or original.dtype != result.dtype:
        return f"{original.dtype}{list(original.shape)} became {result.dtype}{list(result.shape)}"
    if not is_float(original):
        differing = int(np.count_nonzero(original != result))
        return f"{differing} of {count_of(original.size, 'element')} are not equal" if differing else ""
    found, differing = Difference.between(original, result), differing_bits(original, result)
    largest, scale = found.largest, found.scale
    if found.problem:
        return "NaN or infinities are at different positions"
    eps, tiny = float(np.finfo(original.dtype).eps), float(np.finfo(original.dtype).tiny)
    if original.dtype.itemsize < 4:
        parts = finite_parts(original, result)
        neighbours = all(np.all(error <= eps * np.maximum(magnitude, tiny)) for magnitude, error in parts)
        explained = neighbours and differing <= max(1, original.size // _RARE)
    else:
        explained = largest <= ulps * eps * scale
    if explained or not differing:
        return ""
    relative = f" ({largest / scale:.3g} of the largest magnitude)" if scale else ""
    return f"{differing} of {count_of(original.size, 'element')} differ, by up to {largest:.3g}{relative}"
