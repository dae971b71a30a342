"""Masks that random numbers do not make: all ones, all zeros, rows of zeros, and rows padded on the left or on the right."""

from __future__ import annotations

import numpy as np

from onnx_migrate.verify.inputs.corners.values import CornerValue, InputValue
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["MASKS", "mask"]

MASKS = ("masks of ones", "masks of zeros", "padded masks")
"""The names of the feeds."""


def mask(value: InputValue, kind: str, place: int) -> CornerValue:
    """Return a mask of a kind; a single flag is set in every second input, beginning with the first or the second."""
    base = value.base
    # A single flag has only two values.
    if base.size <= 1:
        flag = (place + MASKS.index(kind)) % 2
        return CornerValue(np.full_like(base, flag))
    if kind == "padded masks":
        return CornerValue(_padded(base))
    return CornerValue(np.full_like(base, kind == "masks of ones"))


def _padded(base: Array) -> Array:
    """Return a mask whose rows are in turn padded on the right, empty, padded on the left, and full."""
    length = base.shape[-1]
    values = np.ones_like(base)
    # Each row gets another kind of padding.
    for index, row in enumerate(values.reshape(-1, length)):
        unpadded = max(1, length // 2 - index // 4 % max(1, length // 4 + 1))
        if index % 4 == 0:
            row[unpadded:] = 0
        elif index % 4 == 1:
            row[:] = 0
        elif index % 4 == 2:
            row[: length - unpadded] = 0
    return values
