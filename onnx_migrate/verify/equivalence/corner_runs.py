"""Runs the original on corner feeds, and keeps those on which its outputs say something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice
from math import prod
from typing import Any

import numpy as np
import onnx

from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.standard.schema import is_onnx
from onnx_migrate.verify.compare.noise import Noise
from onnx_migrate.verify.compare.values import flatten
from onnx_migrate.verify.equivalence.feed_search import FeedSearch, Values
from onnx_migrate.verify.equivalence.finite_shares import is_builtin_float, largest_share, mostly_nan
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.inputs.corners.feeds import CornerFeed, Corners
from onnx_migrate.verify.inputs.perturbed import perturbed_by_ulp
from onnx_migrate.verify.inputs.user_inputs import Feed
from onnx_migrate.verify.kernel.arrays import Array, is_float
from onnx_migrate.verify.kernel.difference import Difference

__all__ = ["CornerRuns", "run_corners"]

_PACKED = 4e-3
"""Seconds that one run may take for each corner to have a feed of its own; of slower models one feed has them all."""

_AFFORDABLE = 0.02
"""Seconds that the original's runs on corner feeds may take together, by the time of the first run."""

_STABLE = 1e-3
"""Rounding may move an output on a corner feed by this share of its largest value; narrow types have `_STEPS` instead."""

_STEPS = 8
"""Distances from 1 to the next larger number of the output's type."""

_FASTEST = 2e-4
"""Least seconds that count for one run, which limits the number of feeds."""

_FEW_NODES = 40
"""Nodes, those of sub-graphs included, of a model that runs in a millisecond if its tensors are small."""

_FEW_NUMBERS = 1 << 18
"""Numbers in the initializers of such a model."""

_HEAVY = frozenset(
    {"Loop", "Scan", "LSTM", "GRU", "RNN", "Conv", "ConvTranspose", "Einsum", "NonMaxSuppression"}
)
"""Operators that may take long however small their constants are."""

_FEWEST = 12
"""Number of corner feeds for a model below `_PACKED`. It does not depend on the time of the first run, because that varies."""


@dataclass
class CornerRuns:
    """The corner feeds that were kept, the original's outputs on each, and those on the feed moved by rounding, if it was."""

    feeds: list[Feed] = field(default_factory=list)
    outputs: list[Values] = field(default_factory=list)
    moved: list[Values | None] = field(default_factory=list)

    def of_shapes(self, like: Values) -> list[Values]:
        """Return the outputs that have the shapes of `like`: others vary by their sizes alone."""
        return [outputs for outputs in self.outputs if _has_shapes_of(outputs, like)]

    def append_to(self, search: FeedSearch, noise: Noise, outputs: list[Values]) -> None:
        """Append the corner feeds, their outputs, and how far rounding moves those outputs.

        The method does nothing if rounding decides an output on all other feeds, because no verdict rests on that output then.
        `noise` takes the scale of an output from the other feeds alone: beside huge numbers any difference is small.
        """
        if noise.undetermined() or noise.unstable_shapes:
            return
        for feed, run, moved in zip(self.feeds, self.outputs, self.moved, strict=True):
            search.feeds.append(feed)
            outputs.append(run)
            if moved is not None:
                noise.observe(len(outputs) - 1, moved)


def run_corners(search: FeedSearch, seed: int, exact: Set[str], *, magnitudes: bool) -> CornerRuns:
    """Run the original on corner feeds: on one if it takes long, otherwise on as many as take little time.

    `magnitudes` asks for large and small numbers too.
    """
    runs = CornerRuns()
    if search.source is None:
        return runs
    corners = Corners(search.source, magnitudes)
    # A run of NaN says nothing about shapes.
    first = search.outputs[-1 if mostly_nan(search.outputs[:1]) else 0]
    seconds = 0.0 if _is_light(search.source.model) else search.fastest
    for corner in _affordable(corners, seconds, expensive=search.expensive):
        # The model may refuse the corners and accept a calmer feed.
        for feed in (corner.feed, *corner.instead):
            outputs = _outputs(search, feed.inputs)
            if outputs is None or not _is_comparable(first, outputs, finite=corner.finite):
                continue
            # A second run is too expensive for such a model.
            moved = None if search.expensive else _moved(search, feed, seed, exact)
            if moved is not None and not _is_stable(outputs, moved):
                continue
            runs.feeds.append(feed)
            runs.outputs.append(outputs)
            runs.moved.append(moved)
            break
    return runs


def _affordable(corners: Corners, seconds: float, *, expensive: bool) -> Iterable[CornerFeed]:
    if expensive or seconds > _PACKED:
        return filter(None, [corners.packed()])
    return islice(corners, max(_FEWEST, int(_AFFORDABLE / max(seconds, _FASTEST))))


def _is_light(model: onnx.ModelProto) -> bool:
    """Whether a run surely takes little time, however busy the machine is: then the feeds do not depend on the clock."""
    nodes = list(islice(all_nodes(model), _FEW_NODES + 1))
    heavy = any(node.op_type in _HEAVY or not is_onnx(node.domain) for node in nodes)
    numbers = sum(prod(tensor.dims) for tensor in model.graph.initializer)
    return len(nodes) <= _FEW_NODES and not heavy and numbers <= _FEW_NUMBERS


def _outputs(search: FeedSearch, inputs: Mapping[str, Any]) -> Values | None:
    """Return the original's outputs, None if it does not run on these inputs, which are a guess."""
    try:
        return search.run(inputs)
    except (EvaluationError, MemoryError):
        return None


def _moved(search: FeedSearch, feed: Feed, seed: int, exact: Set[str]) -> Values | None:
    """Return the outputs on a feed moved by one unit in the last place; None if nothing in it can be moved."""
    moved = perturbed_by_ulp(feed.inputs, seed, exact, feed.fixed)
    same = all(
        moved[name] is value or np.array_equal(moved[name], value) for name, value in feed.inputs.items()
    )
    return None if same else _outputs(search, moved)


def _is_comparable(first: Values, outputs: Values, *, finite: bool) -> bool:
    """Whether outputs have the tensors of the first run, and at least half of each is finite, or as much as there; or all."""
    for name, value in outputs.items():
        there = dict(flatten(name, first[name]))
        for part, array in flatten(name, value):
            other = there.get(part)
            if part not in there or (array is None) != (other is None):
                return False
            if array is not None and other is not None and not _is_finite(array, other, throughout=finite):
                return False
    return True


def _is_finite(array: Array, first: Array, *, throughout: bool) -> bool:
    """Whether half of an array of floats is finite, or all, or as much as of the first; a single number need not be."""
    if not is_builtin_float(array) or np.isfinite(array).all() or (array.size == 1 and not throughout):
        return True
    return largest_share(np.isfinite, [array]) >= min(
        1.0 if throughout else 0.5, largest_share(np.isfinite, [first])
    )


def _is_stable(outputs: Values, moved: Values) -> bool:
    """Whether rounding moves no output by much. If it does, a right result that rounds differently is no fault.

    An output whose shape changes would not be compared on any feed.
    """
    # The shapes come first, because elements of other shapes have no partners.
    if not _has_shapes_of(outputs, moved):
        return False
    for name, value in outputs.items():
        for (_, computed), (_, other) in zip(flatten(name, value), flatten(name, moved[name]), strict=True):
            if computed is None or other is None:
                continue
            if np.array_equal(computed, other):
                continue
            # Any change of an integer is a jump.
            if not is_float(computed):
                return False
            movement = Difference.between(computed, other)
            if movement.problem or movement.largest > max(_STABLE, _STEPS * _eps(computed)) * movement.scale:
                return False
    return True


def _eps(array: Array) -> float:
    """Return the distance from 1 to the next larger number of an array's type."""
    return float(np.finfo(array.dtype).eps) if is_builtin_float(array) else 2.0**-3


def _has_shapes_of(outputs: Values, others: Values) -> bool:
    def shapes(name: str, value: object) -> list[tuple[str, object]]:
        return [(part, None if array is None else array.shape) for part, array in flatten(name, value)]

    return all(shapes(name, value) == shapes(name, others[name]) for name, value in outputs.items())
