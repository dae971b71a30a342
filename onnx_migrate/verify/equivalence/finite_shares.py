"""Which share of an output is a finite number, or NaN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onnx_migrate.verify.compare.values import flatten
from onnx_migrate.verify.kernel.arrays import Array

__all__ = ["is_builtin_float", "largest_share", "mostly_nan"]

_NAN = 0.1
"""The share of an output that may be NaN on random inputs before others are looked for."""


def mostly_nan(runs: Sequence[Mapping[str, Any]]) -> bool:
    """Whether more than a tenth of some output is NaN on every feed."""
    return any(
        min(largest_share(np.isnan, [array for _, array in flatten(name, run[name])]) for run in runs) > _NAN
        for name in runs[0]
    )


def largest_share(test: Any, arrays: Sequence[Any]) -> float:
    """Return the share of elements that pass a test, in the float array with the largest share.

    Without float arrays it is 1 for `np.isfinite`, else 0.
    """
    floats = [array for array in arrays if array is not None and is_builtin_float(array) and array.size]
    return max((float(np.mean(test(array))) for array in floats), default=float(test is np.isfinite))


def is_builtin_float(array: Array) -> bool:
    """Whether an array has floats of a type that numpy itself has: of others it does not tell NaN from numbers everywhere."""
    return bool(array.dtype.kind == "f" and array.dtype.isbuiltin == 1)
