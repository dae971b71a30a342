"""Decides on a whole result by the comparisons of its outputs: verified, different, or not determined."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from onnx_migrate.verdicts import Comparison, Kind
from onnx_migrate.verify.kernel.arrays import is_float, widened
from onnx_migrate.verify.kernel.evidence import Observation
from onnx_migrate.verify.kernel.limits import COMPARED

_GIVE_INPUTS = "not tried: give inputs on which it has numbers with --input-data"


@dataclass(frozen=True)
class Coverage:
    """How much of one output was compared: `numbers` over all feeds, and the largest `share` of its elements on one feed."""

    numbers: int = 0
    share: float = 0.0

    def __add__(self, other: Coverage) -> Coverage:
        return Coverage(self.numbers + other.numbers, max(self.share, other.share))


def coverage(observation: Observation, comparison: Comparison) -> Coverage:
    """Return how much of a tensor was compared. Ignored elements do not count, nor does NaN, which equals any other NaN."""
    original = observation.original
    if original is None or not original.size:
        return Coverage()
    compared = original.size - comparison.left_out
    nan = int(np.count_nonzero(np.isnan(widened(original)))) if is_float(original) else 0
    return Coverage(max(0, compared - nan), compared / original.size)


def decide(comparisons: Iterable[Comparison], covered: Mapping[str, Coverage]) -> tuple[Kind, str]:
    """Return the verdict and its reason: the first output that differs decides, then the first that is not determined.

    `covered` has every output of the original that a proof needs. An output that was compared with nothing is not determined
    (rule 1), nor is an output with mostly undefined or unstable elements (rule 6).
    """
    doubts = []
    for comparison in comparisons:
        # A difference counts more than any doubt.
        if comparison.problem:
            at = f"; {comparison.largest_at}" if comparison.largest_at else ""
            return Kind.DIFFERS, f"output {comparison.output!r}: {comparison.problem}{at}"
        doubts += [comparison.doubt] if comparison.doubt else []
    for output, part in covered.items():
        if not part.numbers:
            doubts.append(
                f"output {output!r} was compared with nothing: it is empty or NaN on every input that was tried;"
                f" {_GIVE_INPUTS}"
            )
        elif part.share < COMPARED:
            doubts.append(
                f"only {part.share:.0%} of output {output!r} was compared: the standard leaves the other elements"
                f" undefined, or runs of the original disagree about them; {_GIVE_INPUTS}"
            )
    return (Kind.UNVERIFIED, doubts[0]) if doubts else (Kind.VERIFIED, "")
