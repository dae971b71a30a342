"""Measures how two arrays differ, in blocks, so that it takes little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onnx_migrate.verify.kernel.arrays import Array, in_blocks, is_float, same_bits, sum_of_squares, widened


@dataclass
class Difference:
    """The measured difference of two arrays. Floats are measured over the elements that are finite in both.

    `scale` and `scale_after` are the largest magnitudes. `largest` and `typical` are the largest and the root mean square
    difference. `problem` says whether elements that are not finite differ. Discrete values have `largest` alone: 0 if they are
    equal, else infinity. Arrays of another shape or dtype have infinity too. All is 0 for floats of the same bits.
    """

    scale: float = 0.0
    scale_after: float = 0.0
    largest: float = 0.0
    typical: float = 0.0
    elements: int = 0
    problem: str = ""

    @classmethod
    def between(cls, original: Array, result: Array) -> Difference:
        """Measure in blocks, which takes little memory."""
        if original.shape != result.shape or original.dtype != result.dtype:
            return cls(largest=float("inf"))
        if not is_float(original):
            return cls(largest=0.0 if np.array_equal(original, result) else float("inf"))
        if same_bits(original, result):
            return cls()
        measured, squares, infinities = cls(), 0.0, ""
        for block, other in in_blocks(original, result):
            a, b = widened(block), widened(other)
            finite = np.isfinite(a)
            if not np.array_equal(np.isnan(a), np.isnan(b)):
                measured.problem = "NaN at different positions"
            elif not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(
                a[~finite], b[~finite], equal_nan=True
            ):
                infinities = "infinities at different positions or of different sign"
            finite &= np.isfinite(b)
            a, b = a[finite], b[finite]
            error = np.abs(b - a)
            measured.scale = max(measured.scale, float(np.max(np.abs(a), initial=0.0)))
            measured.scale_after = max(measured.scale_after, float(np.max(np.abs(b), initial=0.0)))
            measured.largest = max(measured.largest, float(np.max(error, initial=0.0)))
            squares, measured.elements = squares + sum_of_squares(error), measured.elements + error.size
        measured.typical = float(np.sqrt(squares / measured.elements)) if measured.elements else 0.0
        measured.problem = measured.problem or infinities
        return measured


def finite_parts(original: Array, result: Array) -> Iterator[tuple[Array, Array]]:
    """Yield magnitudes and differences of the elements that are finite in both arrays, in blocks."""
    for block, other in in_blocks(original, result):
        a, b = widened(block), widened(other)
        finite = np.isfinite(a) & np.isfinite(b)
        yield np.abs(a[finite]), np.abs(b[finite] - a[finite])


def largest_step(one: Array, other: Array) -> float:
    """Return the largest distance of two integer arrays; 0 for other discrete types."""
    if one.dtype.kind not in "iu":
        return 0.0
    return float(np.max(np.abs(one.astype(np.float64) - other.astype(np.float64)), initial=0.0))
