"""What is measured of the difference of two arrays of floats, in blocks, so that it takes little memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onnx_migrate.verify.compare.arrays import Array, in_blocks, widened

__all__ = ["Difference", "finite_parts"]


@dataclass
class Difference:
    """What is measured of two arrays of floats, over the elements that are finite in both.

    `scale` and `scale_after` are the largest magnitudes, `largest` and `typical` the largest and the root mean square
    difference, `problem` says whether those that are not finite differ.
    """

    scale: float = 0.0
    scale_after: float = 0.0
    largest: float = 0.0
    typical: float = 0.0
    elements: int = 0
    problem: str = ""

    @classmethod
    def between(cls, before: Array, after: Array) -> Difference:
        """Measure in blocks, which takes little memory."""
        found, squares, infinities = cls(), 0.0, ""
        for one, other in in_blocks(before, after):
            a, b = widened(one), widened(other)
            finite = np.isfinite(a)
            if not np.array_equal(np.isnan(a), np.isnan(b)):
                found.problem = "NaN at different positions"
            elif not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(
                a[~finite], b[~finite], equal_nan=True
            ):
                infinities = "infinities at different positions or of different sign"
            finite &= np.isfinite(b)
            a, b = a[finite], b[finite]
            error = np.abs(b - a)
            found.scale = max(found.scale, float(np.max(np.abs(a), initial=0.0)))
            found.scale_after = max(found.scale_after, float(np.max(np.abs(b), initial=0.0)))
            found.largest = max(found.largest, float(np.max(error, initial=0.0)))
            squares, found.elements = squares + float(np.dot(error, error)), found.elements + error.size
        found.typical = float(np.sqrt(squares / found.elements)) if found.elements else 0.0
        found.problem = found.problem or infinities
        return found


def finite_parts(before: Array, after: Array) -> Iterator[tuple[Array, Array]]:
    """Yield magnitudes and differences of the elements that are finite in both arrays, in blocks."""
    for one, other in in_blocks(before, after):
        a, b = widened(one), widened(other)
        finite = np.isfinite(a) & np.isfinite(b)
        yield np.abs(a[finite]), np.abs(b[finite] - a[finite])
