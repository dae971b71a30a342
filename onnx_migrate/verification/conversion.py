"""The statement on the conversion, beside those on other numbers that the user asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx_migrate.verdicts import Kind, Statement, Verdict

__all__ = ["with_conversion"]

_FROM_BEST = ("bit-identical", "within-rounding", "within-tolerance")
"""The grades of segments, best first."""


def with_conversion(verdict: Verdict, segments: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a chain of several segments with the statement that in all of them the numbers stay.

    It is that of the segment which is least like its original. If one is unverified, so is the result. Without other numbers
    there is only one statement to make, which the verdict is.
    """
    unverified = next((segment for segment in segments if segment.kind is Kind.UNVERIFIED), None)
    if unverified is not None:
        statement = Statement("conversion", f"unverified: {unverified.reason}", Kind.UNVERIFIED)
    else:
        worst = max(segments, key=lambda segment: _FROM_BEST.index(segment.grade))
        statement = Statement("conversion", worst.agreement)
    if unverified is not None and verdict.verified:
        late = unverified.timed_out
        verdict = replace(verdict, kind=Kind.UNVERIFIED, reason=unverified.reason, timed_out=late)
    if not verdict.statements:
        rounded = any(segment.own_rounding or segment.grade in _FROM_BEST[1:] for segment in segments[:-1])
        return replace(verdict, own_rounding=verdict.own_rounding or rounded)
    return replace(verdict, statements=(statement, *verdict.statements))
