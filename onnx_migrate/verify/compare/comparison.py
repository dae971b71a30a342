"""Compares a value of two runs, element by element: within a tolerance, or bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onnx_migrate.plural import count_of
from onnx_migrate.verdicts import Comparison
from onnx_migrate.verify.compare.arrays import Array, differing_bits, flatten, is_float
from onnx_migrate.verify.compare.difference import Difference, finite_parts
from onnx_migrate.verify.compare.rounding import NO_ROUNDING, Rounding
from onnx_migrate.verify.compare.tolerance import Tolerance, allowance

__all__ = ["OTHER_ELEMENTS", "bit_difference", "compare"]

OTHER_ELEMENTS = "another number of elements, or other keys"
"""What differs in a sequence or map whose tensors cannot be compared one by one."""


def compare(
    name: str,
    before: Array | None,
    after: Array | None,
    tolerance: Tolerance,
    noise: float = 0.0,
    overall_scale: float = 0.0,
    *,
    typical_noise: float = float("inf"),
    discrete_noise: bool = False,
    proved: Rounding = NO_ROUNDING,
) -> Comparison:
    """Compare one tensor of an output; None stands for an absent optional.

    `noise` is the largest difference between runs of the original that differ by rounding only, `overall_scale` the
    largest finite magnitude of the original's output over all feeds. `discrete_noise` says that discrete values of the
    original change with its rounding (an index near a tie): then up to a hundredth of the elements may differ.
    `typical_noise` is the same as `noise` in the root mean square, which does not grow with the number of elements.
    `proved` is what a model changed that is proved to differ by rounding only: twice as much is allowed.
    """
    if before is None or after is None:
        same = before is None and after is None
        return Comparison(
            name,
            None,
            None,
            "none",
            "none",
            problem="" if same else "it is present in only one of the models",
        )
    shapes, types = (before.shape, after.shape), (str(before.dtype), str(after.dtype))
    entry = Comparison(name, *shapes, *types, elements=before.size)
    if before.shape != after.shape:
        return replace(entry, problem=f"shape {list(before.shape)} became {list(after.shape)}")
    if before.dtype != after.dtype:
        return replace(entry, problem=f"element type {types[0]} became {types[1]}")
    if not is_float(before):
        return _discrete(entry, before, after, tolerance, discrete_noise=discrete_noise, proved=proved)
    differing = differing_bits(before, after)
    if differing == 0:
        return entry
    entry = replace(entry, differing=differing)
    return _continuous(entry, before, after, tolerance, noise, typical_noise, overall_scale, proved)


def bit_difference(name: str, before: object, after: object) -> str:
    """Describe the first tensor in which two values are not bit for bit the same; "" where they are."""
    here, there = flatten(name, before), flatten(name, after)
    if [part for part, _ in here] != [part for part, _ in there]:
        return f"{name!r} has {OTHER_ELEMENTS}"
    for (part, a), (_, b) in zip(here, there, strict=True):
        entry = compare(part, a, b, Tolerance(atol=float("inf")))
        if entry.problem:
            return f"{part!r} differs: {entry.problem}"
        if not entry.identical:
            size = f"{entry.largest_absolute:.3g} ({entry.largest_relative:.3g} of the largest magnitude)"
            return f"{part!r} differs in {entry.differing} of {count_of(entry.elements, 'element')}, by up to {size}"
    return ""


def _continuous(
    entry: Comparison,
    before: Array,
    after: Array,
    tolerance: Tolerance,
    noise: float,
    typical_noise: float,
    overall_scale: float,
    proved: Rounding,
) -> Comparison:
    found = Difference.between(before, after)
    scale, largest, problem = found.scale, found.largest, found.problem
    if tolerance.rtol is not None or tolerance.atol is not None:
        rtol, atol = tolerance.rtol or 0.0, tolerance.atol or 0.0
        allowed = atol + rtol * scale if found.elements else 0.0
        wrong = sum(
            int(np.count_nonzero(error > atol + rtol * magnitude))
            for magnitude, error in finite_parts(before, after)
        )
    else:
        # A saturated output (a Sigmoid near zero) has rounding errors of the scale it had before it saturated.
        saturated = scale < 1e-3 * overall_scale
        allowed = allowance(tolerance, overall_scale if saturated else scale, noise, before.dtype)
        allowed = max(allowed, 2 * proved.largest)
        wrong = 0
        if largest > allowed:
            wrong = sum(int(np.count_nonzero(error > allowed)) for _, error in finite_parts(before, after))
        usual = allowance(tolerance, overall_scale if saturated else scale, typical_noise, before.dtype)
        if not wrong and found.typical > max(usual, 2 * proved.largest):
            problem = problem or (
                f"elements differ by {found.typical:.3g} in the root mean square, by more than the {usual:.3g} allowed"
            )
    if wrong and not problem:
        problem = f"{wrong} of {count_of(before.size, 'element')} differ by more than is allowed:"
        problem += f" the largest difference is {largest:.3g}, allowed is {allowed:.3g}"
    whole = max(scale, overall_scale) or found.scale_after
    return replace(
        entry,
        largest_absolute=largest,
        largest_relative=largest / whole if whole else 0.0,
        allowed=allowed,
        problem=problem,
    )


def _discrete(
    entry: Comparison,
    before: Array,
    after: Array,
    tolerance: Tolerance,
    *,
    discrete_noise: bool,
    proved: Rounding,
) -> Comparison:
    unequal = np.asarray(before != after)
    differing = int(np.count_nonzero(unequal))
    largest, allowed, problem = 0.0, 0.0, ""
    if differing and before.dtype.kind in "iu":
        largest = float(np.max(np.abs(before.astype(np.float64) - after.astype(np.float64))))
    near_ties = max(1, before.size // 100) if discrete_noise else 0
    is_proved = differing <= 2 * proved.elements and largest <= 2 * proved.largest
    if differing:
        problem = f"{differing} of {count_of(before.size, 'element')} are not equal"
        problem += f", by up to {largest:.3g}" if largest else ""
        if tolerance.quantum and before.dtype in (np.int8, np.uint8) and largest <= 1:
            allowed, problem = 1.0, ""
        elif differing <= near_ties or is_proved:
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
