"""In how many elements two constants differ, as a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["array_difference"]

_SAME = 1e-5
"""The largest difference of two constants that counts as rounding by constant folding, as a share of the largest value."""


def array_difference(label: str, one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> str:
    """Return in how many elements two constants differ, the first one, and the one that differs most.

    It is "" if they are the same but for rounding.
    """
    if one.shape != other.shape:
        # Gemm stores the transpose of a MatMul's weight.
        if one.ndim == 2 and one.T.shape == other.shape and not array_difference(label, one.T, other):
            return ""
        if one.size != other.size:
            return f"{label} has shape {list(one.shape)}, and {list(other.shape)} in the second model"
        other = other.reshape(one.shape)
    # Texts and complex numbers have no distance.
    if one.dtype.kind not in "fViub" or other.dtype.kind not in "fViub":
        return "" if np.array_equal(one, other) else f"{label} differs"
    # Differences of integers and half floats would overflow or round in their own type.
    wide, wide_other = one.astype(np.float64), other.astype(np.float64)
    apart = np.abs(wide - wide_other)
    size = max(float(np.abs(wide).max(initial=0)), float(np.abs(wide_other).max(initial=0)))
    differs = ~((apart <= _SAME * size) | (wide == wide_other) | (np.isnan(wide) & np.isnan(wide_other)))
    count = int(differs.sum())
    if not count:
        return ""
    if one.size == 1:
        return f"{label} is {one.reshape(-1)[0]:g}, and {other.reshape(-1)[0]:g} in the second model"
    first = tuple(int(indices[0]) for indices in np.nonzero(differs))
    sizes = np.where(differs, np.nan_to_num(apart, nan=np.inf, posinf=np.inf), 0)
    most = tuple(map(int, np.unravel_index(int(np.argmax(sizes)), one.shape)))
    text, pair = f"{label} differs in {count:,} of {one.size:,} elements", "at {}: {:g} and {:g}"
    if count == 1:
        return f"{text}, {pair.format(list(first), one[first], other[first])}"
    if most == first:
        return f"{text}, first and most {pair.format(list(first), one[first], other[first])}"
    largest = pair.format(list(most), one[most], other[most])
    return f"{text}, first {pair.format(list(first), one[first], other[first])}; most {largest}"
