"""Floats at the corners: thresholds and ties, large and small magnitudes, NaN, infinities and both zeros."""

from __future__ import annotations

import numpy as np

from onnx_migrate.verify.inputs.corners.values import CornerValue, InputValue, scattered
from onnx_migrate.verify.kernel.arrays import Array

__all__ = [
    "at_columns",
    "at_thresholds",
    "huge",
    "infinite",
    "large",
    "small",
    "threshold_groups",
    "without_numbers",
]

_FEW_NUMBERS = (1.0, -1.0, 1.0, -0.0, 0.0, 1.0, -1.0)
_HALVES = (1.5, 1.5, -0.0, 0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 2.0, -1.5, -1.5)
"""Few distinct numbers, the largest and the least repeated, and zeros of both signs."""

_SCALES = (64.0, 65536.0, np.inf)
"""Numbers above one of these ends go into another feed: beside large numbers a difference of small ones is rounding."""

_FEW = 64
"""In an array with at least so many elements, a part stays random when thresholds are put in."""


def threshold_groups(value: InputValue) -> list[Array]:
    """Return the numbers at which a model treats an input of floats differently, in groups of one scale."""
    numbers = np.array(value.interest.numbers, value.dtype)
    few, halves = (
        np.array(pool if value.interest.ties else (), value.dtype) for pool in (_FEW_NUMBERS, _HALVES)
    )
    magnitudes = np.abs(numbers.astype(np.float64))
    groups, low = [few], 0.0
    for high in _SCALES:
        group = numbers[(magnitudes >= low) & (magnitudes < high)]
        groups.append(np.concatenate([halves, group]) if not low else group)
        low = high
    return [group for group in groups if group.size]


def at_thresholds(value: InputValue, group: Array, rng: np.random.Generator, start: int) -> CornerValue:
    """Return values that are mostly numbers of the group; of many elements some stay random."""
    return scattered(value.base, group, rng, start, 1.0 if value.base.size < _FEW else 0.8)


def at_columns(value: InputValue, rng: np.random.Generator) -> CornerValue:
    """Return values whose columns have the numbers that the model compares them with."""
    values, fixed = value.base.copy(), np.zeros(value.base.shape, bool)
    for column, numbers in value.interest.columns.items():
        if numbers and column < (values.shape[-1] if values.ndim else 0):
            chosen = rng.choice(np.array(numbers, values.dtype), values[..., column].shape)
            # Some elements keep their usual number.
            from_numbers = rng.random(chosen.shape) < 0.8
            values[..., column] = np.where(from_numbers, chosen, values[..., column])
            fixed[..., column] = from_numbers
    return CornerValue(values, fixed)


def large(value: InputValue, rng: np.random.Generator) -> CornerValue:
    """Return numbers from 100 to 1,000 of both signs, only positive ones if the model's domain has no others."""
    return _of_magnitude(value, rng, 2.0, 3.0)


def small(value: InputValue, rng: np.random.Generator) -> CornerValue:
    """Return numbers from a hundredth down to a hundred-millionth, for float16 down to a ten-thousandth.

    If there are several samples, the first half stays unchanged. So the outputs keep their scale, and rounding is small beside
    it.
    """
    tiny = _of_magnitude(value, rng, -4.0 if value.dtype.itemsize < 4 else -8.0, -2.0).values
    unchanged_rows = len(tiny) // 2 if tiny.ndim else 0
    if unchanged_rows:
        tiny[:unchanged_rows] = value.base[:unchanged_rows]
    return CornerValue(tiny)


def _of_magnitude(value: InputValue, rng: np.random.Generator, low: float, high: float) -> CornerValue:
    shape = value.base.shape
    signs = rng.choice((1.0, -1.0), shape) if value.accepted is None or not value.accepted.domain else 1.0
    return CornerValue(np.asarray(signs * 10.0 ** rng.uniform(low, high, shape)).astype(value.dtype))


def huge(value: InputValue, rng: np.random.Generator, magnitude: float) -> CornerValue:
    """Return random values with one in eight of a magnitude, at most nine tenths of the type's largest number."""
    number = min(magnitude, 0.9 * float(np.finfo(value.dtype).max))
    positive = value.accepted is not None and value.accepted.domain
    pool = np.array((number,) if positive else (number, -number, number / 2), value.dtype)
    return CornerValue(scattered(value.base, pool, rng, 0, 1 / 8).values)


def without_numbers(value: InputValue, rng: np.random.Generator, *, infinities: bool) -> CornerValue:
    """Return random values with NaN, infinities and -0.0 in a few elements of the last sample."""
    pool = (np.nan, np.inf, -np.inf, -0.0, 0.0) if infinities else (np.nan, -0.0, 0.0)
    return _in_last_sample(value, pool, rng)


def infinite(value: InputValue, rng: np.random.Generator) -> CornerValue:
    """Return random values with both infinities in the last sample, as far as it has elements."""
    return _in_last_sample(value, (np.inf, -np.inf), rng, least=2)


def _in_last_sample(
    value: InputValue, numbers: tuple[float, ...], rng: np.random.Generator, least: int = 1
) -> CornerValue:
    values, fixed = value.base.copy(), np.zeros(value.base.shape, bool)
    sampled = values.ndim > 1 and len(values) > 1
    last, flags = (values[-1:], fixed[-1:]) if sampled else (values, fixed)
    count = min(len(numbers), last.size, max(least, last.size // (1 if sampled else 2)))
    positions = rng.permutation(last.size)[:count]
    flat = last.reshape(-1)
    flat[positions] = np.array(numbers, value.dtype)[:count]
    last[...] = flat.reshape(last.shape)
    marks = flags.reshape(-1)
    marks[positions] = True
    flags[...] = marks.reshape(flags.shape)
    return CornerValue(values, fixed)
