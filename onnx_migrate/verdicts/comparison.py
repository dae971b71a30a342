"""One output of two models, compared."""

from __future__ import annotations

from dataclasses import dataclass

from onnx_migrate.verdicts.histogram import Element, Histogram

__all__ = ["Comparison"]


@dataclass(frozen=True)
class Comparison:
    """One output, compared over all feeds and optimisation levels: the feed and level that differ most.

    `largest_relative` is `largest_absolute` divided by the largest finite magnitude that the output has in the original
    on any feed (in the result, where that is zero). `allowed` is the largest absolute difference that is allowed.
    `differing` of `elements` are not bit-identical, and are counted where most are. `problem` is "" where the output
    agrees, else how it differs. `histogram` is how many elements differ by how much, and `largest_at` the element that
    differs most, or the first that is finite in one of the two only; None where every element is equal or none was compared,
    and for over a million elements that differ by no more than is allowed.
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

    @property
    def identical(self) -> bool:
        """Whether every element had the same bits."""
        return not self.problem and self.differing == 0

    @property
    def agrees(self) -> bool:
        """Whether the output is the same within what is allowed."""
        return not self.problem
