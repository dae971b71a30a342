"""Compares an output of two runs, element by element, within a tolerance or bit for bit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx_migrate.verify.compare.tolerance import Tolerance, allowance
from onnx_migrate.verify.verdict import Comparison

__all__ = ["Array", "bit_difference", "compare", "flatten", "is_float", "largest_difference", "scale_of"]

Array = np.ndarray[Any, Any]


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


def largest_difference(before: Array, again: Array) -> float:
    """Return the largest absolute difference of the elements that are finite in both.

    0 for equal discrete values; infinity for unequal ones, and for another shape or dtype.
    """
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
    noise: float = 0.0,
    overall_scale: float = 0.0,
    *,
    discrete_noise: bool = False,
) -> Comparison:
    """Compare one tensor of an output; None stands for an absent optional.

    `noise` is the largest difference between runs of the original that differ by rounding only, `overall_scale` the
    largest finite magnitude of the original's output over all feeds. `discrete_noise` says that discrete values of the
    original change with its rounding (an index near a tie): then up to a hundredth of the elements may differ.
    """
    if before is None or after is None:
        same = before is None and after is None
        return Comparison(
            name, None, None, "none", "none", problem="" if same else "present on one side only"
        )
    shapes, types = (before.shape, after.shape), (str(before.dtype), str(after.dtype))
    entry = Comparison(name, *shapes, *types, elements=before.size)
    if before.shape != after.shape:
        return replace(entry, problem=f"shape {before.shape} became {after.shape}")
    if before.dtype != after.dtype:
        return replace(entry, problem=f"type {types[0]} became {types[1]}")
    if not is_float(before):
        return _discrete(entry, before, after, tolerance, discrete_noise=discrete_noise)
    differing = int(np.count_nonzero(_bits(before) != _bits(after)))
    if differing == 0:
        return entry
    entry = replace(entry, differing=differing)
    return _continuous(entry, before, after, tolerance, noise, overall_scale)


def bit_difference(name: str, before: object, after: object) -> str:
    """Describe the first tensor in which two values are not bit for bit the same; "" where they are."""
    here, there = flatten(name, before), flatten(name, after)
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
    entry: Comparison,
    before: Array,
    after: Array,
    tolerance: Tolerance,
    noise: float,
    overall_scale: float,
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
        # A saturated output (a Sigmoid near zero) has rounding errors of the scale it had before it saturated.
        saturated = scale < 1e-3 * overall_scale
        allowed = allowance(tolerance, overall_scale if saturated else scale, noise, before.dtype)
        wrong = int(np.count_nonzero(error > allowed))
    if wrong and not problem:
        problem = f"{wrong} of {before.size} elements differ by up to {largest:.3g}, allowed is {allowed:.3g}"
    whole = max(scale, overall_scale) or float(np.max(np.abs(b[finite]), initial=0.0))
    return replace(
        entry,
        largest_absolute=largest,
        largest_relative=largest / whole if whole else 0.0,
        allowed=allowed,
        problem=problem,
    )


def _discrete(
    entry: Comparison, before: Array, after: Array, tolerance: Tolerance, *, discrete_noise: bool
) -> Comparison:
    unequal = np.asarray(before != after)
    differing = int(np.count_nonzero(unequal))
    largest, allowed, problem = 0.0, 0.0, ""
    if differing and before.dtype.kind in "iu":
        largest = float(np.max(np.abs(before.astype(np.float64) - after.astype(np.float64))))
    if differing:
        problem = f"{differing} of {before.size} elements are not equal"
        if tolerance.quantum and before.dtype in (np.int8, np.uint8) and largest <= 1:
            allowed, problem = 1.0, ""
        elif discrete_noise and differing <= max(1, before.size // 100):
            problem = ""
    integers = before.dtype.kind in "iu"
    scale = float(np.max(np.abs(before.astype(np.float64)), initial=0.0)) if integers else 0.0
    return replace(
        entry,
        largest_absolute=largest,
        largest_relative=largest / scale if scale else 0.0,
        allowed=allowed,
        differing=differing,
        problem=problem,
    )


def is_float(array: Array) -> bool:
    """Whether an array holds floating-point numbers, complex ones and those of ml_dtypes included."""
    return array.dtype.kind in "fc" or array.dtype.name in ("bfloat16",) or "float" in array.dtype.name


def _wide(array: Array) -> Array:
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def _bits(array: Array) -> Array:
    """View floats as unsigned integers, with one pattern for every NaN: payloads are not compared."""
    if array.dtype.kind == "c":
        array = array.view(array.real.dtype)
    nan = np.isnan(array.astype(np.float64))
    bits = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").copy()
    bits[nan.reshape(bits.shape)] = np.iinfo(bits.dtype).max
    return bits
