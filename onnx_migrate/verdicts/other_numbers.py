"""Texts of a verdict on numbers that the user asked to change: how far the outputs are from the original's."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from onnx_migrate.verdicts.comparison import RoundedOutput
from onnx_migrate.verdicts.verdict import Distance, Kind, Statement

__all__ = ["Deviation", "statement_on", "within_limits"]


@dataclass(frozen=True)
class Deviation:
    """The distance of a result's output from the original's.

    `share` is the largest difference as a share of the output's largest value; if it is `counted`, the share of elements that
    differ. It is infinite if the shape or the places of NaN and infinities differ. `limit` is the largest allowed share, None if
    there is no limit.
    """

    output: str
    share: float
    limit: float | None = None
    counted: bool = False

    @property
    def excess(self) -> float:
        """The share as a multiple of the limit."""
        return self.share / self.limit if self.limit else self.share

    def __str__(self) -> str:
        name, limit = f"output {self.output!r}", f" (limit {percent(self.limit)})" if self.limit else ""
        # An infinite share says that the values cannot be compared as a number.
        if math.isinf(self.share) and self.counted:
            return f"elements of {name} differ{limit}"
        if math.isinf(self.share):
            return f"{name} has another shape, or NaN or infinities in other places"
        if not self.share:
            return f"{name} does not differ{limit}"
        if self.counted:
            return f"{percent(self.share)} of the elements of {name} differ{limit}"
        return f"{name} differs by up to {percent(self.share)} of its largest value{limit}"


def within_limits(
    subject: str, outputs: Sequence[RoundedOutput], distance: Distance | None, floats: Collection[str]
) -> Statement:
    """Return the statement on a result whose outputs each have a limit.

    Two measurements count, and the larger one decides: `outputs` with every value rounded, and `distance` on the verifier's
    inputs. `floats` are the outputs with floating-point numbers.
    """
    deviations = [
        Deviation(output.name, output.error, output.limit, output.name not in floats) for output in outputs
    ]
    if distance is not None and distance.output in floats:
        limits = [output.limit for output in outputs if output.name == distance.output]
        deviations += [Deviation(distance.output, _share(distance), limit) for limit in limits]
    worst = max(deviations, key=lambda deviation: deviation.excess)
    if worst.excess <= 1:
        return Statement(subject, f"within the limit: {worst}")
    # An infinite share is no rounding, so the result is wrong rather than unverified.
    kind = Kind.DIFFERS if math.isinf(worst.share) else Kind.UNVERIFIED
    return Statement(subject, f"beyond the limit: {worst}", kind)


def statement_on(subject: str, distance: Distance | None, floats: Collection[str]) -> Statement:
    """Return the statement on a result that may differ by any amount; `floats` are as in `within_limits`."""
    if distance is None:
        text = "other numbers, as you asked; how far they are from the original's was not measured"
        return Statement(subject, text, Kind.UNVERIFIED)
    counted = distance.output not in floats and not distance.reshaped
    share = distance.differing if counted and distance.differing else _share(distance)
    deviation = Deviation(distance.output, share, counted=counted)
    return Statement(subject, f"other numbers, as you asked: {deviation}")


def percent(share: float) -> str:
    """Return a share in percent, with two digits below 100 %."""
    number = 100 * share
    return f"{number:.2g} %" if number < 99.5 else f"{number:.0f} %"


def _share(distance: Distance) -> float:
    """Return a distance as a share of the largest value of its output."""
    if distance.reshaped or distance.problem:
        return math.inf
    return distance.largest / (distance.original_scale or distance.scale or 1.0)
