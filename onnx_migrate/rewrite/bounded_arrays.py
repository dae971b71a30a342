"""A bound for the arrays that a step makes: none is as long as an output whose size a small file chooses freely."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

__all__ = ["MOST_ELEMENTS", "TooManyElements", "bounded", "bounded_dims"]

MOST_ELEMENTS = 1 << 25
"""The most elements that a constant of a step may have: 256 MB of int64. A step holds a few such arrays at a time."""


class TooManyElements(MemoryError):
    """A step would write a constant of more than MOST_ELEMENTS elements. The refusal is the same as for a lack of memory."""


def bounded(count: int, most: int = MOST_ELEMENTS) -> int:
    """Return a number of elements. Raises TooManyElements."""
    if count > most:
        raise TooManyElements(f"a constant of {count:,} elements, and {most:,} are the most")
    return count


def bounded_dims(dims: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes of an array. Raises TooManyElements."""
    bounded(prod(map(int, dims)))
    return tuple(map(int, dims))
