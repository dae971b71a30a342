"""The contents of a page about a verification: the verdict, and the largest differences of each output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onnx_migrate.report.data import GRADES
from onnx_migrate.verdicts import Comparison, FeedNote, Histogram, Verdict

__all__ = ["Bar", "Finding", "VerificationView", "shape_text"]


@dataclass(frozen=True)
class Bar:
    """A bar of the histogram of an output: its height as a percentage, and what it counts."""

    height: int
    text: str


@dataclass(frozen=True)
class Finding:
    """The result for one output; `grade` is "same", "near" or "differs", the largest differences are text.

    The figures are "" where no elements were compared. `place` is the element that differs most, `bars` how many elements
    differ by how much.
    """

    output: str
    kind: str
    shape: str
    grade: str
    text: str
    largest: str
    allowed: str
    differing: str
    place: str = ""
    bars: tuple[Bar, ...] = ()


@dataclass(frozen=True)
class VerificationView:
    """How the result was compared with the original: the verdict and its reason, the inputs, and each output."""

    kind: str
    text: str
    feeds: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, verdict: Verdict) -> VerificationView:
        """Prepare a verdict."""
        evaluator = f"with {verdict.evaluator}" if verdict.evaluator else ""
        grade = GRADES.get(verdict.grade, "")
        if grade and verdict.compared_with:
            grade += f", compared with {verdict.compared_with} and not with the original"
        text = " ".join(filter(None, (verdict.reason, evaluator)))
        return cls(
            verdict.kind.value,
            f"{text}: {grade}" if grade else text,
            tuple(map(_feed, verdict.feeds)),
            tuple(map(_finding, verdict.comparisons)),
            verdict.notes,
        )


def shape_text(dims: Sequence[int | str | None] | None) -> str:
    """Return the shape of a value, as in "[N, 3, ?]"."""
    if dims is None:
        return "any shape"
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


def _feed(feed: FeedNote) -> str:
    origin = "" if feed.seed is None else f", seed {feed.seed}"
    shapes = ", ".join(f"{name} {shape_text(shape)}" for name, shape in feed.shapes)
    return f"{feed.name}{origin}: {shapes}"


def _finding(item: Comparison) -> Finding:
    if item.problem:
        grade, text = "differs", item.problem
    elif item.identical:
        grade, text = "same", "bit-identical"
    else:
        grade, text = "near", "equal within the tolerance"
    compared = item.elements > 0
    return Finding(
        item.output,
        item.dtype_after,
        shape_text(item.shape_after),
        grade,
        text,
        f"{item.largest_absolute:.3g}" if compared else "",
        f"{item.allowed:.3g}" if compared else "",
        f"{item.differing:,} of {item.elements:,}" if compared else "",
        "" if item.largest_at is None else str(item.largest_at),
        _bars(item.histogram),
    )


def _bars(histogram: Histogram | None) -> tuple[Bar, ...]:
    if histogram is None:
        return ()
    rows = list(histogram.rows())
    most = max(number for _, number in rows)
    return tuple(Bar(-(-number * 100 // most), f"{name}: {number:,}") for name, number in rows)
