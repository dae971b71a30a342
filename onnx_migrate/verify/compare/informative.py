"""Whether an output can show a difference: one that is the same whatever the inputs are proves nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from onnx_migrate.verify.compare.arrays import Array, extremes, flatten, in_blocks, is_float, widened

__all__ = ["VARYING_INPUTS", "is_informative", "uninformative_outputs"]

VARYING_INPUTS = "give inputs on which outputs vary with --input-data"
"""What a user can do about outputs that are not informative, for messages."""


def is_informative(values: Sequence[Any]) -> bool:
    """Whether the values of one output, one for each run, vary within a run or between two runs that follow.

    A tensor varies if its finite elements are neither all the same within rounding nor all at one of two ends, as those
    of a saturated Sigmoid are.
    """
    arrays = [[array for _, array in flatten("", value)] for value in values]
    return any(_varies(array) for parts in arrays for array in parts) or any(
        _changed(a, b) for a, b in pairwise(arrays)
    )


def uninformative_outputs(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the outputs that are not informative, in the order of the outputs."""
    return [name for name in runs[0] if not is_informative([run[name] for run in runs])] if runs else []


def _varies(array: Array | None) -> bool:
    if array is None or array.size == 0:
        return False
    if not is_float(array) or array.dtype.kind == "c":
        return bool(np.any(array != array.flat[0]))
    ends = extremes(array)
    if ends is None:
        return False
    eps = (
        float(np.finfo(array.dtype).eps)
        if array.dtype.kind == "f" and array.dtype.isbuiltin == 1
        else 2.0**-7
    )
    least, extent = ends[0], ends[1] - ends[0]
    if not extent > 64 * eps * max(-least, ends[1]):
        return False
    low, high = least + 1e-4 * extent, ends[1] - 1e-4 * extent
    blocks = (widened(block) for block, _ in in_blocks(array, array))
    if any(bool(np.any((block > low) & (block < high))) for block in blocks):
        return True
    # Only two distinct values: a Softmax or Sigmoid that is saturated, which hides what is computed before it.
    return sum(int(np.count_nonzero(np.isfinite(block))) for block, _ in in_blocks(array, array)) <= 2


def _changed(one: list[Array | None], other: list[Array | None]) -> bool:
    pairs = [(a, b) for a, b in zip(one, other, strict=False) if a is not None and b is not None]
    return len(one) != len(other) or any(
        a.shape != b.shape or _varies(np.stack([np.resize(a, 1), np.resize(b, 1)]))
        for a, b in pairs
        if a.size and b.size
    )
