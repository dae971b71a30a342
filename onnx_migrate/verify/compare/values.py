"""The arrays inside a value that a run produced, and their magnitudes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from onnx_migrate.verify.kernel.arrays import Array, in_blocks, is_float, widened

__all__ = ["extremes", "flatten", "paired", "scale_of"]


def flatten(name: str, value: object) -> list[tuple[str, Array | None]]:
    """Return the arrays of a tensor, sequence, map or optional, each with a name such as `y[0]`."""
    if value is None:
        return [(name, None)]
    if isinstance(value, np.ndarray):
        return [(name, value)]
    if isinstance(value, Mapping):
        # The order of keys may differ between two runs, and their parts are compared in order.
        sorted_entries = sorted(value.items(), key=lambda item: str(item[0]))
        return [part for key, item in sorted_entries for part in flatten(f"{name}[{key!r}]", item)]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [part for index, item in enumerate(value) for part in flatten(f"{name}[{index}]", item)]
    return [(name, np.asarray(value))]


def paired(name: str, one: object, other: object) -> list[tuple[str, Array | None, Array | None]] | None:
    """Return the arrays of two values side by side, each pair with its name; None if they have other elements or keys."""
    here, there = flatten(name, one), flatten(name, other)
    if [part for part, _ in here] != [part for part, _ in there]:
        return None
    return [(part, a, b) for (part, a), (_, b) in zip(here, there, strict=True)]


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
    # Types such as bfloat16 have no fast minimum in NumPy.
    if array.dtype.kind == "f" and array.dtype.isbuiltin == 1 and array.size:
        least, greatest = float(array.min()), float(array.max())
        # If both are finite, the array has no NaN: min and max would return it.
        if np.isfinite(least) and np.isfinite(greatest):
            return least, greatest
    block_extremes = []
    for block, _ in in_blocks(array, array):
        wide = widened(block)
        finite = wide[np.isfinite(wide)]
        block_extremes += [float(finite.min()), float(finite.max())] if finite.size else []
    return (min(block_extremes), max(block_extremes)) if block_extremes else None
