"""What rounding changes between two runs, and whether values from the same inputs differ by a kernel's rounding only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnx_migrate.verify.compare.arrays import Array, bit_patterns, is_float, largest_difference, widened

__all__ = ["NO_ROUNDING", "Rounding", "beyond_rounding", "rounding_between", "share_of_noise"]

_RARE = 100
"""Of so many elements of a type as coarse as float16, one may be rounded to the neighbouring number."""


@dataclass(frozen=True)
class Rounding:
    """By how much a run that differs by rounding only differs, at most, and in how many elements."""

    largest: float
    elements: int


NO_ROUNDING = Rounding(0.0, 0)


def rounding_between(before: Array, after: Array) -> Rounding:
    """Return what rounding changed between two runs, whose values have the same shape."""
    if is_float(before) and before.dtype == after.dtype:
        largest = largest_difference(before, after)
        return Rounding(largest, int(np.count_nonzero(bit_patterns(before) != bit_patterns(after))))
    elements = int(np.count_nonzero(before != after))
    steps = np.abs(before.astype(np.float64) - after.astype(np.float64)) if before.dtype.kind in "iu" else 0.0
    return Rounding(float(np.max(steps, initial=0.0)), elements)


def share_of_noise(before: Array, after: Array) -> float:
    """Return the share of a discrete value's elements that changed, 0 where it is small enough to be ties.

    A byte of a quantised model that moves by one step is no change.
    """
    if is_float(before):
        return 0.0
    unequal = np.asarray(before != after)
    if before.dtype in (np.int8, np.uint8):
        unequal = np.abs(before.astype(np.int16) - after.astype(np.int16)) > 1
    changed = int(np.count_nonzero(unequal))
    return changed / before.size if changed > max(1, before.size // _RARE) else 0.0


def beyond_rounding(before: Array, after: Array, ulps: float) -> str:
    """Describe how a value differs by more than a kernel may round differently; "" where it does not.

    Sums in another order move an element by a few units in the last place of the largest: `ulps` of them are allowed.
    In float16 kernels compute in float32 and round once, so that an element is at most one unit off, and rarely.
    Integers must be equal.
    """
    if before.shape != after.shape or before.dtype != after.dtype:
        return f"{before.dtype}{list(before.shape)} became {after.dtype}{list(after.shape)}"
    if not is_float(before):
        differing = int(np.count_nonzero(before != after))
        return f"{differing} of {before.size} elements are not equal" if differing else ""
    differing = int(np.count_nonzero(bit_patterns(before) != bit_patterns(after)))
    if not differing:
        return ""
    a, b = widened(before), widened(after)
    finite = np.isfinite(a)
    if not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(
        a[~finite], b[~finite], equal_nan=True
    ):
        return "NaN or infinities are at different positions"
    error, magnitude = np.abs(a - b)[finite], np.abs(a[finite])
    largest, scale = float(np.max(error, initial=0.0)), float(np.max(magnitude, initial=0.0))
    eps = float(np.finfo(before.dtype).eps)
    if before.dtype.itemsize < 4:
        neighbour = eps * np.maximum(magnitude, float(np.finfo(before.dtype).tiny))
        if np.all(error <= neighbour) and differing <= max(1, before.size // _RARE):
            return ""
    elif largest <= ulps * eps * scale:
        return ""
    relative = f" ({largest / scale:.3g} of the largest magnitude)" if scale else ""
    return f"{differing} of {before.size} elements differ, by up to {largest:.3g}{relative}"
