"""Arrays of values that runs produced: their element types and their bits, read in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 20
"""Elements that are widened to double precision at a time, for comparisons in blocks."""

_ONE_THREAD = 8192
"""Elements of a product for which OpenBLAS takes one thread: waiting for others costs more than the sum of a small array."""


def sum_of_squares(values: Array) -> float:
    """Return the sum of the squares of a vector."""
    parts = (values[start : start + _ONE_THREAD] for start in range(0, values.size, _ONE_THREAD))
    return float(sum(np.dot(part, part) for part in parts))


def in_blocks(one: Array, other: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the elements of two arrays of one shape in blocks, so that a computation on them takes little memory."""
    flat, same = one.reshape(-1), other.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        yield flat[start : start + _BLOCK], same[start : start + _BLOCK]


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays of one shape and dtype are the same byte for byte; the comparison needs hardly any memory."""
    if one.dtype.hasobject or not (one.flags.c_contiguous and other.flags.c_contiguous):
        return False
    mine, theirs = one.reshape(-1).view(np.uint8), other.reshape(-1).view(np.uint8)
    return all(np.array_equal(a, b) for a, b in in_blocks(mine, theirs))


def is_float(array: Array) -> bool:
    """Whether an array holds floating-point numbers, complex ones and those of ml_dtypes included."""
    return array.dtype.kind in "fc" or "float" in array.dtype.name


def widened(array: Array) -> Array:
    """Return an array in double precision, complex arrays unchanged."""
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def differing_bits(one: Array, other: Array) -> int:
    """Return how many floats of two arrays of one shape and dtype do not have the same bits."""
    if same_bits(one, other):
        return 0
    return sum(int(np.count_nonzero(bit_patterns(a) != bit_patterns(b))) for a, b in in_blocks(one, other))


def bit_patterns(array: Array) -> Array:
    """View floats as unsigned integers, with one pattern for every NaN: payloads are not compared."""
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    nan = np.isnan(array.astype(np.float64))
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").copy()
    bits[nan.reshape(bits.shape)] = np.iinfo(bits.dtype).max
    return bits
