"""How the elements of an output differ, for messages: a histogram by powers of ten, and the element that differs most."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from onnx_migrate.verdicts import Comparison, Element, Histogram
from onnx_migrate.verify.kernel.arrays import Array, in_blocks, is_float, widened

__all__ = ["with_spread"]

_DECADES = 8
"""Number of powers of ten that the histogram distinguishes, down from the largest difference."""

_LEAST = -300
"""The least power of ten of a bin of its own."""

_QUICK = 1 << 20
"""Most elements for which allowed differences are counted; a mismatch is always counted."""


def with_spread(entry: Comparison, original: Array | None, result: Array | None) -> Comparison:
    """Return a comparison of two arrays with counts of their differences; `entry` itself if these were not counted."""
    if original is None or result is None or original.shape != result.shape or original.dtype != result.dtype:
        return entry
    # Large arrays are only examined if they are wrong.
    if not (entry.problem or (entry.differing and original.size <= _QUICK)):
        return entry
    numeric = is_float(original) or original.dtype.kind in "iu"
    if not numeric:
        unequal = np.flatnonzero(np.asarray(original != result))
        return (
            replace(entry, largest_at=_element(original, result, int(unequal[0]))) if unequal.size else entry
        )
    decades: Counter[int] = Counter()
    equal = not_finite = start = 0
    largest, largest_index, unlike = 0.0, None, None
    # Blocks limit the memory for large outputs.
    for block_before, block_after in in_blocks(original, result):
        a, b = (
            block.astype(np.float64) if block.dtype.kind in "iu" else widened(block)
            for block in (block_before, block_after)
        )
        with np.errstate(invalid="ignore"):
            error = np.abs(b - a)
        # NaN at one position in both models is no difference.
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        error[same] = 0.0
        # The histogram has no bin for an error that is NaN or infinite.
        odd = ~same & ~np.isfinite(error)
        error[odd] = 0.0
        if unlike is None and odd.any():
            unlike = start + int(np.argmax(odd))
        if error.size and float(error.max()) > largest:
            largest, largest_index = float(error.max()), start + int(np.argmax(error))
        equal, not_finite = equal + int(np.count_nonzero(same)), not_finite + int(np.count_nonzero(odd))
        powers, numbers = np.unique(np.floor(np.log10(error[error > 0])).astype(np.int64), return_counts=True)
        decades.update(dict(zip(powers.tolist(), numbers.tolist(), strict=True)))
        start += a.size
    at = largest_index if unlike is None else unlike
    if at is None:  # zeros of different sign, and NaNs of other bits
        return entry
    spread_entry = replace(entry, largest_at=_element(original, result, at))
    return replace(spread_entry, histogram=_histogram(decades, equal, not_finite))


def _histogram(decades: Counter[int], equal: int, not_finite: int) -> Histogram:
    """Return the histogram of powers of ten; smaller differences than the last power are in a bin from 0."""
    if not decades:
        return Histogram((), (), equal, not_finite)
    top = max(decades)
    bottom = max(min(decades), top - _DECADES + 1, _LEAST)
    edges = [float(f"1e{power}") for power in range(bottom, top + 2)]
    counts = [decades[power] for power in range(bottom, top + 1)]
    smaller = sum(number for power, number in decades.items() if power < bottom)
    if smaller:
        edges, counts = [0.0, *edges], [smaller, *counts]
    return Histogram(tuple(edges), tuple(counts), equal, not_finite)


def _element(original: Array, result: Array, place: int) -> Element:
    index = tuple(int(axis) for axis in np.unravel_index(place, original.shape))
    return Element(index, _plain(original[index]), _plain(result[index]))


def _plain(value: object) -> float | str:
    """Return an element as a Python number, or as text if it is no number or a complex one."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, (int, float)) and not isinstance(plain, bool):
        return plain
    try:
        return repr(plain) if isinstance(plain, (bool, str, bytes, complex)) else float(plain)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(plain)
