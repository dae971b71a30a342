"""Floating-point numbers of one type as bytes in another, and the losses: overflow, and numbers that become 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

__all__ = ["Extent", "converted", "floats", "has_too_few_digits", "largest", "largest_whole", "smallest"]

Array = np.ndarray[Any, Any]

_LIMITS: dict[int, tuple[float, float, float]] = {
    TensorProto.FLOAT: (float(np.finfo(np.float32).max), 3.4028235677973366e38, 2.0**-150),
    TensorProto.FLOAT16: (65504.0, 65520.0, 2.0**-25),
    TensorProto.BFLOAT16: (3.3895313892515355e38, 3.3961775292304957e38, 2.0**-134),
}
"""The largest finite number, the smallest magnitude that is rounded to infinity, and the largest that is rounded to 0."""

_LARGEST_WHOLE: dict[int, float] = {
    TensorProto.FLOAT: 2.0**24, TensorProto.FLOAT16: 2.0**11, TensorProto.BFLOAT16: 2.0**8,
}  # fmt: skip
"""The number up to which each type holds every whole number."""

_NORMAL_HALF, _INFINITE_HALF = np.uint32(0x38800000), np.uint32(0x477FF000)
"""The bits, in float32, of the smallest number that is a normal one of float16, and of the smallest that becomes infinite."""

_ROUNDED_REBIASED = np.uint32((0x0FFF - ((127 - 15) << 23)) % 2**32)
"""Added to the bits of a float32: nearly half of the last float16 bit, minus the difference of the exponents' biases."""

_MATTERS = 2.0**-11
"""A number that becomes 0 counts as lost if it is at least this share of the largest in its tensor. Others are below rounding."""


def largest(kind: int) -> float:
    """Return the largest finite number of an element type."""
    return _LIMITS[kind][0]


def smallest(kind: int) -> float:
    """Return the smallest number above 0 of an element type."""
    return 2 * _LIMITS[kind][2]


def largest_whole(kind: int) -> float:
    """Return the number up to which an element type holds every whole number."""
    return _LARGEST_WHOLE[kind]


def floats(raw: bytes | memoryview, kind: int) -> Array:
    """Return the numbers of raw little-endian data of an element type as float32, or as float64 for float64 data."""
    if kind == TensorProto.DOUBLE:
        return np.frombuffer(raw, "<f8")
    if kind == TensorProto.BFLOAT16:
        return (np.frombuffer(raw, "<u2").astype("<u4") << 16).view(np.float32)
    return np.frombuffer(raw, "<f4" if kind == TensorProto.FLOAT else "<f2").astype(np.float32, copy=False)


def converted(numbers: Array, kind: int) -> bytes:
    """Return numbers as raw little-endian data of an element type, rounded to the nearest, ties to even.

    For bfloat16 they are given in float32.
    """
    if kind == TensorProto.FLOAT16 and numbers.dtype == np.float32:
        return _halves(numbers).tobytes()
    if kind != TensorProto.BFLOAT16:
        with np.errstate(over="ignore"):
            return numbers.astype("<f4" if kind == TensorProto.FLOAT else "<f2").tobytes()
    bits = np.ascontiguousarray(numbers, "<f4").view("<u4")
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return (
        # Rounding could carry a NaN into its sign bit, and a NaN without the bit 0x40 could become infinite.
        np.where(np.isnan(numbers), (bits >> np.uint32(16)) | np.uint32(0x40), rounded)
        .astype("<u2")
        .tobytes()
    )


def _halves(numbers: Array) -> Array:
    """Return float32 as the bits of float16. NumPy converts one number after the other, and takes twice as long.

    NumPy still converts numbers that become no normal number of float16; few weights do. Each step writes into the memory of
    the step before, since fresh memory costs more than the arithmetic.
    """
    bits = np.ascontiguousarray(numbers, "<f4").reshape(-1).view("<u4")
    sizes = bits & np.uint32(0x7FFFFFFF)
    wide = sizes - _NORMAL_HALF
    others = np.flatnonzero(wide >= _INFINITE_HALF - _NORMAL_HALF)
    np.right_shift(sizes, np.uint32(13), out=wide)
    wide &= np.uint32(1)  # ties go to even
    wide += sizes
    wide += _ROUNDED_REBIASED
    wide >>= np.uint32(13)
    np.right_shift(bits, np.uint32(16), out=sizes)
    sizes &= np.uint32(0x8000)
    wide |= sizes
    halves = wide.astype("<u2")
    with np.errstate(over="ignore"):
        halves[others] = bits[others].view("<f4").astype("<f2").view("<u2")
    return halves


@dataclass
class Extent:
    """The largest finite magnitude of some numbers, and the largest one that becomes 0 in the type `kind`."""

    kind: int
    largest: float = 0.0
    vanishing: float = 0.0

    def add(self, numbers: Array) -> None:
        """Take more numbers into account."""
        if not numbers.size:
            return
        # The magnitudes of a large weight would be a second array of its size.
        top = max(float(numbers.max()), -float(numbers.min()))
        if not np.isfinite(top):
            numbers = numbers[np.isfinite(numbers)]
            top = float(np.abs(numbers).max(initial=0.0))
        self.largest = max(self.largest, top)
        vanishes = _LIMITS[self.kind][2]
        if vanishes < self.largest * _MATTERS:
            return  # beside the largest number, no number that becomes 0 matters
        sizes = np.abs(numbers)
        gone = sizes[sizes <= vanishes]
        self.vanishing = max(self.vanishing, float(gone.max(initial=0.0)))

    def join(self, other: Extent) -> None:
        """Take the numbers of another extent into account."""
        self.largest = max(self.largest, other.largest)
        self.vanishing = max(self.vanishing, other.vanishing)

    @property
    def overflows(self) -> bool:
        """Whether a finite number becomes infinite."""
        return self.largest >= _LIMITS[self.kind][1]

    @property
    def lost(self) -> str:
        """Return the loss of the numbers, as the end of a sentence; "" if the numbers are only rounded."""
        if self.overflows:
            return f"{self.largest:.6g} overflows"
        if self.vanishing and self.vanishing >= self.largest * _MATTERS:
            return f"{self.vanishing:.3g} becomes 0"
        return ""


def has_too_few_digits(extent: Extent) -> bool:
    """Return whether all numbers of an extent are so small that the type holds fewer digits of them than of others."""
    return 0 < extent.largest * _MATTERS < _LIMITS[extent.kind][2]
