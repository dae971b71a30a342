"""One output of two models, compared: how many elements differ by how much, and where most."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Comparison", "Element", "Histogram", "RoundedOutput"]

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


@dataclass(frozen=True)
class Comparison:
    """One output, compared over all feeds and optimisation levels: the feed and level that differ most.

    `largest_relative` is `largest_absolute` divided by the largest finite magnitude that the output has in the original
    on any feed (in the result, where that is zero). `allowed` is the largest absolute difference that is allowed.
    `differing` of `elements` are not bit-identical, and are counted where most are. `problem` is "" where the output
    agrees, else how it differs. `histogram` is how many elements differ by how much, and `largest_at` the element that
    differs most, or the first that is finite in one of the two only; None where every element is equal or none was compared,
    and for over a million elements that differ by no more than is allowed. `left_out` elements are not compared: the standard
    leaves them undefined, or runs of the original disagree. `doubt` says why a difference cannot be told from rounding, ""
    if it can.
    """

    output: str
    shape_before: tuple[int, ...] | None
    shape_after: tuple[int, ...] | None
    dtype_before: str
    dtype_after: str
    largest_absolute: float = 0.0
    largest_relative: float = 0.0
    allowed: float = 0.0
    elements: int = 0
    differing: int = 0
    problem: str = ""
    histogram: Histogram | None = None
    largest_at: Element | None = None
    left_out: int = 0
    doubt: str = ""

    @property
    def identical(self) -> bool:
        """Whether every element had the same bits."""
        return not self.problem and not self.doubt and self.differing == 0

    @property
    def agrees(self) -> bool:
        """Whether the output is the same within what is allowed."""
        return not self.problem


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


@dataclass(frozen=True)
class RoundedOutput:
    """How far one output is off with every value rounded to its type after each node, and how far it may be.

    `error` is a share of the output's largest magnitude; of what is no float, the share of elements that differ. `floor` is that
    of the original with its weights and inputs rounded, None where the limit did not need it.
    """

    name: str
    error: float
    limit: float
    floor: float | None = None

    @property
    def agrees(self) -> bool:
        """Whether it is within the limit."""
        return self.error <= self.limit

    @property
    def excess(self) -> float:
        """How far off it is, by its limit."""
        return self.error / self.limit

    def __str__(self) -> str:
        if math.isinf(self.error):
            return (
                f"output {self.name!r}, every value rounded, has another shape than the original's, or NaN or infinite numbers"
                " in other places"
            )
        return (
            f"output {self.name!r}, every value rounded, is off by {self.error:.2g} of its largest magnitude;"
            f" {self.limit:.2g} is allowed"
        )
