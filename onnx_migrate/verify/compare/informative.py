"""Which values say something: an output that is the same whatever goes in proves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from onnx_migrate.verify.compare.arrays import Array, flat, is_float

__all__ = ["told"]


def told(runs: Sequence[Mapping[str, Any]]) -> dict[str, bool]:
    """Say for each value whether some run gave numbers that neither are one constant nor saturated."""
    telling: dict[str, bool] = {}
    for outputs in runs:
        for name, value in outputs.items():
            telling[name] = telling.get(name, False) or any(_varies(array) for _, array in flat(name, value))
    for name, tells in telling.items():
        if not tells:
            arrays = [[part for _, part in flat(name, outputs[name])] for outputs in runs]
            telling[name] = any(_moved(a, b) for a, b in pairwise(arrays))
    return telling


def _varies(array: Array | None) -> bool:
    if array is None or array.size == 0:
        return False
    if not is_float(array) or array.dtype.kind == "c":
        return bool(np.any(array != array.flat[0]))
    finite = array[np.isfinite(array)].astype(np.float64)
    if finite.size == 0:
        return False
    reach = np.ptp(finite)
    eps = np.finfo(array.dtype).eps if array.dtype.kind == "f" else 2.0**-7
    if not reach > 64 * eps * np.max(np.abs(finite)):
        return False
    place = (finite - finite.min()) / reach
    # Nothing but two values is a Softmax or Sigmoid at its ends, which hides all that stands before it.
    return finite.size <= 2 or bool(np.any((place > 1e-4) & (place < 1 - 1e-4)))


def _moved(one: list[Array | None], other: list[Array | None]) -> bool:
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a is not None and b is not None]
    return len(one) != len(other) or any(
        a.shape != b.shape or _varies(np.stack([np.resize(a, 1), np.resize(b, 1)]))
        for a, b in pairs
        if a.size and b.size
    )
