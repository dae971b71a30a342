"""How the elements of two arrays differ: how many by how much, and where most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Element", "Histogram"]

_WIDTH = 20
"""Largest number of characters of a bar."""


@dataclass(frozen=True)
class Element:
    """An element of an array before and after: its index, and both values, as text where they are no numbers."""

    index: tuple[int, ...]
    before: float | str
    after: float | str

    def __str__(self) -> str:
        return f"at {list(self.index)} {_value(self.before)} became {_value(self.after)}"


@dataclass(frozen=True)
class Histogram:
    """How many elements differ by how much.

    `counts[i]` elements differ by at least `edges[i]` and less than `edges[i + 1]`; `equal` ones are no part of them, nor
    are those `not_finite`, where one of the two values is infinite or NaN and the other is another.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    equal: int = 0
    not_finite: int = 0

    def __str__(self) -> str:
        bins = [f"{number:,} by {name}" for name, number in self.rows() if number and name != "equal"]
        return f"{self.equal:,} equal, {', '.join(bins)}" if self.equal else ", ".join(bins)

    def rows(self) -> Iterator[tuple[str, int]]:
        """Yield each range of differences, in words, and how many elements are in it."""
        if self.equal:
            yield "equal", self.equal
        for low, high, number in zip(self.edges, self.edges[1:], self.counts, strict=False):
            yield (f"less than {high:.0e}" if low == 0 else f"{low:.0e} to {high:.0e}"), number
        if self.not_finite:
            yield "infinity or NaN", self.not_finite

    def lines(self) -> Iterator[str]:
        """Yield a line for each range, with a bar."""
        rows = list(self.rows())
        names, numbers = max(len(name) for name, _ in rows), max(len(f"{number:,}") for _, number in rows)
        most = max(number for _, number in rows)
        for name, number in rows:
            bar = "#" * -(-number * _WIDTH // most)
            yield f"{name:{names}}  {number:{numbers},}  {bar}".rstrip()


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
