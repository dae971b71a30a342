"""The comparison of one output of two models: counts of differences by size, and the element that differs most."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from onnx_migrate.messages import count_of, share_text

__all__ = ["Comparison", "Element", "Histogram", "RoundedOutput", "beyond_limit"]

_WIDTH = 20
"""Largest number of characters of a bar."""


@dataclass(frozen=True)
class Element:
    """An element of an array before and after: its index, and both values, as text if they are no numbers."""

    index: tuple[int, ...]
    before: float | str
    after: float | str

    def __str__(self) -> str:
        return f"at {list(self.index)} {_value(self.before)} became {_value(self.after)}"


@dataclass(frozen=True)
class Histogram:
    """Counts of elements by the size of their difference.

    `counts[i]` elements differ by at least `edges[i]` and less than `edges[i + 1]`. They do not contain the `equal` elements. Nor
    do they contain `not_finite` elements: one of the two values is infinite or NaN, and the other is another value.
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
    """One output, compared over all feeds and optimisation levels; it has the numbers of the feed and level that differ most.

    `largest_relative` is `largest_absolute` divided by the largest finite magnitude of the output in the original, over all
    feeds. If that is zero, the result's magnitude replaces it. `allowed` is the largest allowed absolute difference. `differing`
    of `elements` are not bit-identical, at the feed and level with most of them. `problem` is "" if the output agrees, else how
    it differs. `histogram` counts elements by the size of their difference. `largest_at` is the element that differs most, or the
    first that is finite in only one model.

    Both are None if every element is equal or none was compared. They are also None for more than a million elements with allowed
    differences. `left_out` elements are not compared: the standard leaves them undefined, or runs of the original disagree.
    `doubt` says why a difference may be rounding, "" if that is clear.
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
        """Whether the output is the same within the limit."""
        return not self.problem


def _value(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


@dataclass(frozen=True)
class RoundedOutput:
    """The error of one output with every value rounded to its type after each node, and the limit of it.

    Both are shares of the output's largest value. For an output without floats, they are shares of its elements that differ, and
    `counts_elements` is set. `floor` is the error of the original with its weights and inputs rounded, None if nobody measured
    it. `type` is the type that the run simulates.
    """

    name: str
    error: float
    limit: float
    floor: float | None = None
    type: str = ""
    counts_elements: bool = False

    @property
    def agrees(self) -> bool:
        """Whether it is within the limit."""
        return self.error <= self.limit

    @property
    def excess(self) -> float:
        """The error / the limit."""
        return self.error / self.limit

    @property
    def difference(self) -> str:
        """The difference of the output, as the end of a sentence that begins with its name."""
        if math.isinf(self.error):
            return "has another shape than the original's, or NaN or infinite numbers that the original does not have"
        whole = "of its elements" if self.counts_elements else "of its largest value"
        return f"differs by up to {_percent(self.error)} {whole} (limit {_percent(self.limit)})"

    def __str__(self) -> str:
        where = (
            f"in {self.type}" if self.type == "float32" else f"in simulated {self.type or 'low precision'}"
        )
        if math.isinf(self.error):
            return f"output {self.name!r} {self.difference}, {where}"
        whole = "elements" if self.counts_elements else "largest value"
        return f"output {self.name!r}: error {_percent(self.error)} {where} (limit {_percent(self.limit)} of the {whole})"


def _percent(share: float) -> str:
    return f"{100 * share:,.0f} %" if share >= 0.1 else f"{100 * share:.2g} %"


def beyond_limit(wrong: int, size: int, largest: float, limit: float, scale: float) -> str:
    """Describe how many of all elements differ by more than a limit; with a `scale`, both numbers are shares of it."""
    if scale:
        most = f"the largest difference is {share_text(largest / scale)} of the largest value (limit {share_text(limit / scale)})"
    else:
        most = f"the largest difference is {largest:.3g} (limit {limit:.3g})"
    return f"{wrong} of {count_of(size, 'element')} differ by more than the limit: {most}"
