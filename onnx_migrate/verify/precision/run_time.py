"""How long one run of an original takes with every value rounded: by an estimate, or by the clock if the estimate is far off.

An estimate is the same on all machines, so that the result of a search is, too. It is too low for a model with operators that it
does not know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import onnx

from onnx_migrate.facts.running_cost.estimate import estimate
from onnx_migrate.facts.running_cost.value_estimate import Dims

__all__ = ["affordable", "estimated_seconds", "seconds_of_run"]

_SECONDS_BY_OPERATION, _SECONDS_BY_BYTE, _SECONDS_BY_NODE = 1e-10, 3e-9, 2e-5
"""Least seconds on one core for a multiplication, for a byte that a node writes and that is rounded, and for a node."""

_FAR = 16.0
"""Measured seconds / estimated seconds. Above it the estimate is wrong: a busy machine alone takes up to 8 times as long."""


def estimated_seconds(model: onnx.ModelProto, sizes: Mapping[str, Dims] | None) -> float:
    """Return about how long one run takes with inputs of these sizes, every value rounded."""
    work = estimate(model, sizes).tally.work
    seconds = work.operations * _SECONDS_BY_OPERATION + work.written * _SECONDS_BY_BYTE
    return max(seconds + work.runs * _SECONDS_BY_NODE, _SECONDS_BY_NODE)


def seconds_of_run(model: onnx.ModelProto, sizes: Mapping[str, Dims], fastest: float) -> float:
    """Return the estimate, or about the time of the `fastest` run so far if that is much longer.

    The result is then a power of 4, so that most machines come to the same one.
    """
    estimated = estimated_seconds(model, sizes)
    # The clock says little about a run of few milliseconds, even if the estimate is far lower.
    if not _FAR * max(estimated, 1e-3) < fastest < math.inf:
        return estimated
    return float(4.0 ** math.floor(math.log(fastest, 4)))


def affordable(seconds: float, seconds_of_one: float, least: int, most: int) -> int:
    """Return how many runs of `seconds_of_one` fit into so many seconds, but from `least` to `most`."""
    return int(min(max(seconds / seconds_of_one, least), most))
