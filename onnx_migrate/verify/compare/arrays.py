"""Holds two runs' outputs against each other, within what rounding alone explains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnx_migrate.verify.verdict import Comparison

__all__ = ["Array", "Tolerance", "compare", "flat", "is_float", "noise", "scale_of", "unequal"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Tolerance:
    """What may differ. With `rtol` or `atol`: `|after - before| <= atol + rtol * |before|`, per element.

    Otherwise, per output: `max(floor * eps * scale, factor * noise)`, at most `ceiling * scale`, where scale
    is the largest finite magnitude of the original's output and eps that of the coarsest float type in the
    model. `quantum` lets int8 and uint8 outputs of quantised models be off by one. Other integers, bools and
    strings are equal or differ.
    """

    rtol: float | None = None
    atol: float | None = None
    floor: float = 8.0
    factor: float = 10.0
    ceiling: float = 1e-2
    quantum: bool = False
    eps: float = 0.0


def flat(name: str, value: object) -> list[tuple[str, Array | None]]:
    """Return the arrays of a tensor, sequence, map or optional, each with a name such as `y[0]`."""
    if value is None:
        return [(name, None)]
    if isinstance(value, np.ndarray):
        return [(name, value)]
    if isinstance(value, Mapping):
        items = sorted(value.items(), key=lambda item: str(item[0]))
        return [part for key, item in items for part in flat(f"{name}[{key!r}]", item)]
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return [part for index, item in enumerate(value) for part in flat(f"{name}[{index}]", item)]
    return [(name, np.asarray(value))]


def noise(before: Array, again: Array) -> float:
    """Return the largest difference between two runs of one model; infinity where they cannot be compared."""
    if before.shape != again.shape or before.dtype != again.dtype:
        return float("inf")
    if not is_float(before):
        return 0.0 if np.array_equal(before, again) else float("inf")
    a, b = _wide(before), _wide(again)
    both = np.isfinite(a) & np.isfinite(b)
    return float(np.max(np.abs(a[both] - b[both]), initial=0.0))


def scale_of(array: Array | None) -> float:
    """Return the largest finite magnitude of a float array; 0 for anything else."""
    if array is None or not is_float(array):
        return 0.0
    wide = np.abs(_wide(array))
    return float(np.max(wide[np.isfinite(wide)], initial=0.0))


def compare(
    name: str,
    before: Array | None,
    after: Array | None,
    tolerance: Tolerance,
    heard: float = 0.0,
    usual: float = 0.0,
    *,
    jumps: bool = False,
) -> Comparison:
    """Compare one array; `heard` is the noise of the original, `usual` its scale over all feeds.

    `jumps` says that the original's own discrete values change with its rounding (an index near a tie): such
    integers then differ in at most a hundredth of the elements before it counts.
    """
    if before is None or after is None:
        same = before is None and after is None
        return Comparison(
            name, None, None, "none", "none", problem="" if same else "present on one side only"
        )
    shapes = before.shape, after.shape
    types = str(before.dtype), str(after.dtype)
    if before.shape != after.shape or before.dtype != after.dtype:
        what = "shape" if before.shape != after.shape else "type"
        pair = shapes if what == "shape" else types
        return Comparison(
            name, *shapes, *types, elements=before.size, problem=f"{what} {pair[0]} became {pair[1]}"
        )
    if not is_float(before):
        return _discrete(name, before, after, tolerance, jumps=jumps)
    differing = int(np.count_nonzero(_bits(before) != _bits(after)))
    if differing == 0:
        return Comparison(name, *shapes, *types, elements=before.size)
    return _continuous(name, before, after, tolerance, heard, usual, differing)


def unequal(name: str, before: object, after: object) -> str:
    """Say where two values are not bit for bit the same, and by how much; "" where they are."""
    here, there = flat(name, before), flat(name, after)
    if [part for part, _ in here] != [part for part, _ in there]:
        return f"{name!r} holds other elements"
    for (part, a), (_, b) in zip(here, there, strict=True):
        entry = compare(part, a, b, Tolerance(atol=float("inf")))
        if entry.problem:
            return f"{part!r}: {entry.problem}"
        if not entry.identical:
            size = f"{entry.largest_absolute:.3g} ({entry.largest_relative:.3g} of the largest)"
            return f"{part!r}: {entry.differing} of {entry.elements} elements differ, by up to {size}"
    return ""


def _continuous(
    name: str, before: Array, after: Array, tolerance: Tolerance, heard: float, usual: float, differing: int
) -> Comparison:
    a, b = _wide(before), _wide(after)
    finite = np.isfinite(a)
    problem = ""
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        problem = "NaN in other places"
    elif not np.array_equal(finite, np.isfinite(b)) or not np.array_equal(a[np.isinf(a)], b[np.isinf(a)]):
        problem = "infinities in other places"
    finite &= np.isfinite(b)
    magnitude = np.abs(a[finite])
    error = np.abs(b[finite] - a[finite])
    scale = float(np.max(magnitude, initial=0.0))
    largest = float(np.max(error, initial=0.0))
    if tolerance.rtol is not None or tolerance.atol is not None:
        bound = (tolerance.atol or 0.0) + (tolerance.rtol or 0.0) * magnitude
        allowed = float(np.max(bound, initial=0.0))
        wrong = int(np.count_nonzero(error > bound))
    else:
        # A saturated output (a Sigmoid at zero) keeps the rounding of the scale it comes from.
        saturated = scale < 1e-3 * usual
        allowed = allowance(tolerance, usual if saturated else scale, heard, before.dtype)
        wrong = int(np.count_nonzero(error > allowed))
    if wrong and not problem:
        problem = f"{wrong} of {before.size} elements differ by up to {largest:.3g}, allowed is {allowed:.3g}"
    whole = max(scale, usual, float(np.max(np.abs(b[finite]), initial=0.0)) if scale == usual == 0.0 else 0.0)
    relative = largest / whole if whole else 0.0
    return Comparison(
        name,
        before.shape,
        after.shape,
        str(before.dtype),
        str(after.dtype),
        largest,
        relative,
        allowed,
        before.size,
        differing,
        problem,
    )


def allowance(tolerance: Tolerance, scale: float, heard: float, dtype: np.dtype[Any]) -> float:
    """Return the absolute difference that rounding explains in an output of this scale, noise and type."""
    eps = max(tolerance.eps, _eps(dtype))
    floor = tolerance.floor * eps * scale
    return max(floor, min(tolerance.factor * heard, tolerance.ceiling * scale))


def _discrete(name: str, before: Array, after: Array, tolerance: Tolerance, *, jumps: bool) -> Comparison:
    unequal = np.asarray(before != after)
    differing = int(np.count_nonzero(unequal))
    largest, allowed, problem = 0.0, 0.0, ""
    if differing and before.dtype.kind in "iu":
        largest = float(np.max(np.abs(before.astype(np.float64) - after.astype(np.float64))))
    if differing:
        problem = f"{differing} of {before.size} elements are not equal"
        if tolerance.quantum and before.dtype in (np.int8, np.uint8) and largest <= 1:
            allowed, problem = 1.0, ""
        elif jumps and differing <= max(1, before.size // 100):
            problem = ""
    scale = (
        float(np.max(np.abs(before.astype(np.float64)), initial=0.0)) if before.dtype.kind in "iu" else 0.0
    )
    return Comparison(
        name,
        before.shape,
        after.shape,
        str(before.dtype),
        str(after.dtype),
        largest,
        largest / scale if scale else 0.0,
        allowed,
        before.size,
        differing,
        problem,
    )


def is_float(array: Array) -> bool:
    """Whether an array holds floats, complex ones and ml_dtypes' included."""
    return array.dtype.kind in "fc" or array.dtype.name in ("bfloat16",) or "float" in array.dtype.name


def _wide(array: Array) -> Array:
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def _bits(array: Array) -> Array:
    """View floats as integers, with every NaN the same: a payload is not a number."""
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    wide = np.isnan(array.astype(np.float64))
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").copy()
    bits[wide.reshape(bits.shape)] = np.iinfo(bits.dtype).max
    return bits


def _eps(dtype: np.dtype[Any]) -> float:
    if dtype.kind == "c":
        return float(np.finfo(dtype).eps)
    known = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
    return known.get(dtype.name, 2.0**-3)
