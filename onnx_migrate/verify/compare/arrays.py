"""Arrays of values that runs produced: those inside a value, their magnitude, difference and bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = [
    "Array",
    "bit_patterns",
    "differing_bits",
    "extremes",
    "flatten",
    "in_blocks",
    "is_float",
    "paired",
    "same_bits",
    "scale_of",
    "sum_of_squares",
    "widened",
]

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 20
"""Elements that are widened to double precision at a time, where an array is compared in blocks."""

_ONE_THREAD = 8192
"""Elements of a product for which OpenBLAS takes one thread: waiting for others costs more than the sum of a small array."""


def flatten(name: str, value: object) -> list[tuple[str, Array | None]]:
    """Return the arrays of a tensor, sequence, map or optional, each with a name such as `y[0]`."""
    if value is None:
        return [(name, None)]
    if isinstance(value, np.ndarray):
        return [(name, value)]
    if isinstance(value, Mapping):
        items = sorted(value.items(), key=lambda item: str(item[0]))
        return [part for key, item in items for part in flatten(f"{name}[{key!r}]", item)]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [part for index, item in enumerate(value) for part in flatten(f"{name}[{index}]", item)]
    return [(name, np.asarray(value))]


def paired(name: str, one: object, other: object) -> list[tuple[str, Array | None, Array | None]] | None:
    """Return the arrays of two values side by side, each pair with its name; None where they have other elements or keys."""
    here, there = flatten(name, one), flatten(name, other)
    if [part for part, _ in here] != [part for part, _ in there]:
        return None
    return [(part, a, b) for (part, a), (_, b) in zip(here, there, strict=True)]


def sum_of_squares(values: Array) -> float:
    """Return the sum of the squares of a vector."""
    parts = (values[start : start + _ONE_THREAD] for start in range(0, values.size, _ONE_THREAD))
    return float(sum(np.dot(part, part) for part in parts))


def in_blocks(one: Array, other: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the elements of two arrays of one shape in blocks, so that what is computed from them takes little memory."""
    flat, same = one.reshape(-1), other.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        yield flat[start : start + _BLOCK], same[start : start + _BLOCK]


def scale_of(array: Array | None) -> float:
    """Return the largest finite magnitude of a float array; 0 for anything else."""
    if array is None or not is_float(array):
        return 0.0
    if array.dtype.kind == "c":
        wide = np.abs(array)
        return float(np.max(wide[np.isfinite(wide)], initial=0.0))
    least, greatest = extremes(array) or (0.0, 0.0)
    return max(-least, greatest)


def extremes(array: Array) -> tuple[float, float] | None:
    """Return the least and the greatest finite element of an array of real floats; None if it has no finite one."""
    if array.dtype.kind == "f" and array.dtype.isbuiltin == 1 and array.size:
        least, greatest = float(array.min()), float(array.max())
        if np.isfinite(least) and np.isfinite(greatest):
            return least, greatest
    found = []
    for block, _ in in_blocks(array, array):
        wide = widened(block)
        finite = wide[np.isfinite(wide)]
        found += [float(finite.min()), float(finite.max())] if finite.size else []
    return (min(found), max(found)) if found else None


def same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays of one shape and dtype are the same byte for byte, which takes no memory to find out."""
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
