"""Judges one tensor of two models: is it the same, within which allowance, and which elements could not be compared?

Rules 2, 3, 4, 6 and 8 of docs/maintainers/proof-kernel.md, each a function.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onnx_migrate.verdicts import Comparison, beyond_limit
from onnx_migrate.verify.kernel.arrays import Array, differing_bits, is_float
from onnx_migrate.verify.kernel.difference import Difference, finite_parts, largest_step
from onnx_migrate.verify.kernel.evidence import Measurement, Observation, Tolerance
from onnx_migrate.verify.kernel.limits import (
    AGAIN_FACTOR,
    DECISIONS,
    NEIGHBOURS,
    NOISE_FACTOR,
    QUANTISED_CEILING,
    QUANTISED_STEP,
    SATURATED,
    SIMPLIFIED_SHARE,
    SIMPLIFIED_ULPS,
    SUBNORMAL_STEPS,
    precision_of,
)


def judge(observation: Observation) -> Comparison:
    """Compare one tensor of an output with the original's."""
    original, result = observation.original, observation.result
    if original is None or result is None:
        problem = "" if original is result else "it is present in only one of the models"
        return Comparison(observation.output, None, None, "none", "none", problem=problem)
    shapes, types = (original.shape, result.shape), (str(original.dtype), str(result.dtype))
    entry = Comparison(observation.output, *shapes, *types, elements=original.size)
    if original.shape != result.shape:
        return replace(entry, problem=f"shape {list(original.shape)} became {list(result.shape)}")
    if original.dtype != result.dtype:
        return replace(entry, problem=f"element type {types[0]} became {types[1]}")
    left_out = _left_out(observation.measurement, original)
    if left_out is not None:
        entry = replace(entry, left_out=int(np.count_nonzero(left_out)))
        # Equal elements count as compared and right.
        neutral = np.zeros((), original.dtype) if original.dtype != object else np.asarray("", object)
        original, result = (np.where(left_out, neutral, array) for array in (original, result))
    if not is_float(original):
        return _discrete(entry, original, result, observation)
    differing = differing_bits(original, result)
    return _floats(replace(entry, differing=differing), original, result, observation) if differing else entry


def _left_out(measurement: Measurement, original: Array) -> Array | None:
    """Return the elements that are not compared (rule 6): undefined ones, and floats that are finite in one run only."""
    masks = [measurement.undefined, measurement.unstable if is_float(original) else None]
    fitting = [mask for mask in masks if mask is not None and mask.shape == original.shape and mask.any()]
    return np.logical_or.reduce(fitting) if fitting else None


def _floor(tolerance: Tolerance, scale: float, dtype: np.dtype[np.generic]) -> float:
    """Return the absolute difference that is always allowed in an output of this scale and type (rule 2)."""
    precision = precision_of(dtype)
    ulps = precision.floor if tolerance.floor is None else tolerance.floor
    smallest = SUBNORMAL_STEPS * precision.eps * precision.least_normal
    return max(ulps * max(tolerance.eps, precision.eps) * scale, smallest)


def _floats(entry: Comparison, original: Array, result: Array, observation: Observation) -> Comparison:
    """Compare floats that differ in some bits (rule 2)."""
    tolerance, measurement = observation.tolerance, observation.measurement
    gap = Difference.between(original, result)
    # The scale of all runs counts, because one feed may give small numbers.
    whole = max(gap.scale, measurement.scale) or gap.scale_after
    entry = replace(
        entry,
        largest_absolute=gap.largest,
        largest_relative=gap.largest / whole if whole else 0.0,
        problem=gap.problem,
    )
    # The limits of the user replace the rules.
    if tolerance.is_given:
        return _within_given(entry, original, result, tolerance, gap)
    scale = _scale(gap.scale, measurement.scale)
    floor, ceiling = _floor(tolerance, scale, original.dtype), precision_of(original.dtype).ceiling * scale
    factor = NOISE_FACTOR if tolerance.factor is None else tolerance.factor
    explained = AGAIN_FACTOR * measurement.explanation.largest if measurement.explanation else 0.0
    entry = replace(entry, allowed=max(floor, min(max(factor * measurement.largest, explained), ceiling)))
    usual = max(floor, min(max(factor * measurement.typical, explained), ceiling))
    if entry.problem:
        return entry
    if gap.largest > entry.allowed:
        # The original's own noise may explain the difference, so no verdict is possible.
        if gap.largest <= max(AGAIN_FACTOR * measurement.largest, explained):
            share = gap.largest / (scale or gap.largest)
            return replace(
                entry,
                doubt=_not_told_apart(entry.output, f"by up to {100 * share:.2g} % of its largest value"),
            )
        wrong = sum(
            int(np.count_nonzero(error > entry.allowed)) for _, error in finite_parts(original, result)
        )
        return replace(
            entry, problem=beyond_limit(wrong, original.size, gap.largest, entry.allowed, gap.scale)
        )
    if gap.typical > usual:
        # Many small errors may show a fault that no single element shows.
        mean = f"elements differ by {gap.typical:.3g} in the root mean square, by more than the {usual:.3g} allowed"
        return replace(entry, problem=mean)
    return entry


def _scale(scale: float, scale_of_all: float) -> float:
    """Return the magnitude that rounding is relative to: runtimes round a Sigmoid or Softmax relative to 1."""
    return scale_of_all if scale < SATURATED * scale_of_all and scale_of_all <= 1 else scale


def _within_given(
    entry: Comparison, original: Array, result: Array, tolerance: Tolerance, gap: Difference
) -> Comparison:
    rtol, atol = tolerance.rtol or 0.0, tolerance.atol or 0.0
    entry = replace(entry, allowed=atol + rtol * gap.scale if gap.elements else 0.0)
    parts = finite_parts(original, result)
    wrong = sum(int(np.count_nonzero(error > atol + rtol * magnitude)) for magnitude, error in parts)
    problem = beyond_limit(wrong, original.size, gap.largest, entry.allowed, gap.scale) if wrong else ""
    return replace(entry, problem=entry.problem or problem)


def _discrete(entry: Comparison, original: Array, result: Array, observation: Observation) -> Comparison:
    """Compare integers, booleans and strings (rule 3): equal, except for elements that rounding decides in the original."""
    tolerance, measurement = observation.tolerance, observation.measurement
    unequal = np.asarray(original != result)
    differing = int(np.count_nonzero(unequal))
    # Equal arrays need no further look.
    if not differing:
        return entry
    largest = largest_step(original, result)
    scale = largest_step(original, np.zeros_like(original))
    entry = replace(
        entry,
        differing=differing,
        largest_absolute=largest,
        largest_relative=largest / scale if scale else 0.0,
    )
    few = max(1, int(original.size * DECISIONS))
    unstable = measurement.unstable
    unstable = (
        unstable if unstable is not None and unstable.shape == original.shape else np.zeros_like(unequal)
    )
    changed = int(np.count_nonzero(unstable))
    if tolerance.quantum and original.dtype in (np.int8, np.uint8) and largest <= QUANTISED_STEP:
        most = max(few, min(2 * changed, int(original.size * QUANTISED_CEILING)))
        if differing <= most:
            return replace(entry, allowed=float(QUANTISED_STEP))
    # All unequal elements change in the original, too.
    if not np.any(unequal & ~unstable):
        share = f"in {changed / original.size:.2g} of its elements"
        return entry if changed <= few else replace(entry, doubt=_not_told_apart(entry.output, share))
    if measurement.explanation and differing <= AGAIN_FACTOR * measurement.explanation.elements:
        share = f"in {differing / original.size:.2g} of its elements"
        return entry if differing <= few else replace(entry, doubt=_not_told_apart(entry.output, share))
    if changed and differing <= few:
        return replace(entry, doubt=_not_told_apart(entry.output, "in other elements on each run"))
    distance = f", by up to {largest:.3g}" if largest else ""
    return replace(entry, problem=_unequal(differing, original.size) + distance)


def _not_told_apart(output: str, share: str) -> str:
    return (
        f"rounding alone changes output {output!r} of the original {share}, so a fault would look the same as rounding."
        " Use --input-data with inputs on which it is stable (not tried)"
    )


def _unequal(count: int, size: int) -> str:
    return f"{count} of {_elements(size)} {'is' if count == 1 else 'are'} not equal"


def _elements(count: int) -> str:
    return f"{count} element" if count == 1 else f"{count} elements"


def beyond_one_node(original: Array, recomputed: Array, ulps: float) -> str:
    """Describe how a value differs by more than one node may round differently (rule 4); "" if it does not.

    `original` is what the original computes, `recomputed` what the result's nodes compute from the original's own values.
    Sums in another order move an element by a few units in the last place of the largest: `ulps` of them are allowed.
    In float16, kernels compute in float32 and round once: an element is at most one unit off, and rarely; 0 and -0 are one
    number. Discrete values must be equal.
    """
    if original.shape != recomputed.shape or original.dtype != recomputed.dtype:
        return f"{original.dtype}{list(original.shape)} became {recomputed.dtype}{list(recomputed.shape)}"
    if not is_float(original):
        differing = int(np.count_nonzero(original != recomputed))
        return _unequal(differing, original.size) if differing else ""
    gap, differing = Difference.between(original, recomputed), differing_bits(original, recomputed)
    if gap.problem:
        return "NaN or infinities are at different positions"
    precision = precision_of(original.dtype)
    # Half floats round once, from float32.
    if original.dtype.itemsize < 4:
        parts = list(finite_parts(original, recomputed))
        near = all(np.all(e <= precision.eps * np.maximum(m, precision.least_normal)) for m, e in parts)
        moved = sum(int(np.count_nonzero(error)) for _, error in parts)
        explained = near and moved <= max(1, original.size * NEIGHBOURS)
    else:
        explained = gap.largest <= ulps * precision.eps * gap.scale
    if explained or not differing:
        return ""
    relative = f" ({100 * gap.largest / gap.scale:.3g} % of the largest value)" if gap.scale else ""
    return f"{differing} of {_elements(original.size)} differ, by up to {gap.largest:.3g}{relative}"


def worse_than(original: Array, unsimplified: Array, simplified: Array, eps: float = 0.0) -> str:
    """Describe how simplification makes an output worse (rule 8) than it is without simplification; "" if it does not.

    A float may move by a few units in the last place of its own type, at the output's largest value. A float16 may move as far as
    one node rounds. `eps` is the least eps, if the user asked for a coarser type. `judge` decides on discrete elements.
    """
    # Other shapes are judged elsewhere.
    if not is_float(original) or not original.shape == unsimplified.shape == simplified.shape:
        return ""
    # Half floats have few digits, so one step is a large share.
    if original.dtype.itemsize < 4 and not eps:
        return beyond_one_node(unsimplified, simplified, SIMPLIFIED_ULPS)
    before, after = Difference.between(original, unsimplified), Difference.between(original, simplified)
    if after.problem and not before.problem:
        # The problem comes from simplification.
        return after.problem
    precision, share = precision_of(original.dtype), SIMPLIFIED_SHARE if original.dtype == np.float32 else 0.0
    scale = max(before.scale, after.scale)
    limit = max(SIMPLIFIED_ULPS * max(precision.eps, eps), share) * scale
    if after.largest <= before.largest + limit:
        return ""
    moved, without = (gap.largest / scale if scale else 1.0 for gap in (after, before))
    return f"it differs by {100 * moved:.2g} % of its largest value, and by {100 * without:.2g} % without simplification"
