"""Chooses the groups of an original's nodes that can compute in the narrow type; it tries them in one session.

First, each group alone is narrow once, which gives its effect on the error. Then the groups are sorted by effect for each unit of
gain. The choice takes as many of them, in this order, as keep the outputs within their limits together.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from onnx_migrate.model.graphs import BodyKey
from onnx_migrate.process import mark
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, Evaluator, Runnable, open_model
from onnx_migrate.verify.evaluators.scopes import with_own_names
from onnx_migrate.verify.evaluators.switched import switched
from onnx_migrate.verify.inputs.generate import WIDE
from onnx_migrate.verify.model_traits import without_draws
from onnx_migrate.verify.precision.feeds import SMALL, ZEROS
from onnx_migrate.verify.precision.measured import Measured
from onnx_migrate.verify.precision.reference import Reference, reference_of
from onnx_migrate.verify.precision.run_time import affordable
from onnx_migrate.verify.settings import Settings

__all__ = ["BEYOND", "MOST_GROUPS", "NARROWED", "Group", "Narrowed", "narrowed"]

Place = tuple[BodyKey, str]

MOST_GROUPS = 32
"""Groups that one session switches."""

BEYOND = 0.8
"""Ratio of error to limit for rounded weights alone. Above it, no rounding of a group is tried beside them."""

_FEWEST_GROUPS = 6
"""Groups that even a slow model is divided into."""

_PRODUCT_GAIN = 100.0
"""Gain of a product; another node has gain 1. Users want a narrow type to speed up products."""

_MOST_FEEDS = 6
"""Feeds on which groups are measured: errors of one feed vary by a factor of two."""

_MOST_FAILING = 3
"""Feeds with too large errors on which groups are measured in any case: nodes that help on one of them may not help on others."""

_WORK = 10.0
"""Estimated seconds that the runs of one session may take: a slow model runs on fewer feeds, and is divided into fewer groups."""

_CLOCK = 60.0
"""Seconds after which a session tries no further group, even if the estimate was lower. Such a result depends on the machine."""


@dataclass(frozen=True)
class Group:
    """Nodes, by their bodies and first outputs, that are narrow together, and how many of them are products."""

    places: tuple[Place, ...]
    products: int = 0

    @property
    def gain(self) -> float:
        """How much it gains if they are narrow."""
        return len(self.places) + _PRODUCT_GAIN * self.products


@dataclass(frozen=True)
class Narrowed:
    """The places of the groups that can be narrow together, and the errors that led to this choice.

    The errors are error / limit of the outputs. In `base` no group is narrow, in `every` all are, and in `excess` all of `narrow`
    are. In `alone` one group is narrow, beside the products if these can be; NaN stands for a group that was not measured.
    `problem` says why nothing was measured, "" otherwise.
    """

    narrow: frozenset[int] = frozenset()
    base: float = math.inf
    alone: tuple[float, ...] = ()
    every: float = math.inf
    excess: float = math.inf
    work: float = 0.0
    """The estimated seconds of all runs."""
    is_late: bool = False
    """Whether the clock ended the session, so that some groups were not measured."""
    problem: str = ""


NARROWED = "onnx_migrate.verify.precision.groups:narrowed"
"""The function that the child process runs."""


def narrowed(
    original: Runnable,
    result: Runnable,
    kind: int,
    settings: Settings,
    draws: int,
    groups: Sequence[Group],
    most: float,
    weights: bool = False,
) -> Narrowed:
    """Return the groups that can compute in the narrow type of `result`, with errors of up to `most` times the limit.

    Values are rounded nearly like in `result`, on the feeds that had too large errors last. So the groups still have to be
    converted and compared. With `weights` the function returns groups that can read weights of the narrow type.
    """
    original, result = map(with_own_names, without_draws(original, result))
    try:
        reference = reference_of(original, result, settings, draws)
        seconds = reference.seconds
        parts = _joined(len(groups), affordable(_WORK / 2, seconds, _FEWEST_GROUPS, MOST_GROUPS))
        fewest = min(max(len(reference.failing), 1), _MOST_FAILING)
        feeds = _telling(reference)[
            : affordable(_WORK / 2 / max(len(parts), 1), seconds, fewest, _MOST_FEEDS)
        ]
        joined = [_union([groups[index] for index in part]) for part in parts]
        step_lists = [group.places for group in joined]
        runnable, switches = switched(original, result, kind, step_lists, weights=weights)
        model = open_model(runnable, UNOPTIMIZED)
        measured = Measured(reference, result, kind, settings, False, None)
        selection = _Selection(measured, model, switches, joined, feeds, most)
        selected = selection.run()
    except EvaluationError as error:
        return Narrowed(problem=f"the model with rounded groups does not {error.failed_to}: {error}")
    return replace(
        selected,
        narrow=frozenset(index for part in selected.narrow for index in parts[part]),
        work=selection.runs * seconds,
        alone=tuple(effect for effect, part in zip(selected.alone, parts, strict=False) for _ in part),
    )


def _joined(count: int, most: int) -> list[range]:
    """Return the places of so many groups in at most `most` ranges."""
    length = max(1, -(-count // most))
    return [range(start, min(start + length, count)) for start in range(0, count, length)]


def _union(groups: Sequence[Group]) -> Group:
    return Group(
        tuple(step for group in groups for step in group.places), sum(group.products for group in groups)
    )


def _telling(reference: Reference) -> list[int]:
    """Return the places of feeds, those first on which results were off, without those on which few errors count."""
    failing = [*reversed(reference.failing)][:_MOST_FAILING] or reference.order[:1]
    others = (index for index in reference.order if index not in failing)
    return [*failing, *(index for index in others if reference.feeds[index].name not in (SMALL, WIDE, ZEROS))]


class _Selection:
    """Measures the groups of one session and chooses among them."""

    def __init__(
        self,
        measured: Measured,
        model: Evaluator,
        switches: list[str],
        groups: Sequence[Group],
        feeds: Sequence[int],
        most: float,
    ) -> None:
        self._measured, self._model, self._switches = measured, model, switches
        self._groups, self._feeds, self._most = groups, feeds, most
        self._known: dict[frozenset[int], float] = {}
        self._end = time.monotonic() + _CLOCK
        self.is_late = False
        """Whether a combination of groups was not measured, because the time was up."""

    def run(self) -> Narrowed:
        """Measure each group alone, and then choose; products are narrow together if they can be, and the others beside them."""
        indices = range(len(self._groups))
        base = self._excess(())
        if base > BEYOND:
            return Narrowed(base=base, excess=base, is_late=self.is_late)
        # Rounded weights alone may use up the limit, and groups then still get half of it, added as squares.
        self._most = max(self._most, math.hypot(base, self._most / 2))
        every = self._excess(indices)
        if every <= self._most:
            return Narrowed(frozenset(indices), base, every=every, excess=every)
        narrow = [place for place in indices if self._groups[place].products]
        if self._excess(narrow) > self._most:
            narrow = []
        others = [place for place in indices if place not in narrow]
        alone = {place: self._excess([*narrow, place]) for place in others}
        measured = {place for place in others if frozenset([*narrow, place]) in self._known}
        least = self._excess(narrow)
        order = sorted(others, key=lambda place: (self._cost(alone[place], least, place), place))
        # A group that is too much alone would fail every longer prefix, so that the bisection would end
        # there.
        order = [place for place in order if alone[place] <= self._most]
        narrow = self._longest_prefix(narrow, order)
        for place in order:
            if place not in narrow and self._excess([*narrow, place]) <= self._most:
                narrow = [*narrow, place]
        alone.update(dict.fromkeys(set(others) - measured, math.nan))
        effects = tuple(alone.get(place, least) for place in indices)
        return Narrowed(frozenset(narrow), base, effects, every, self._excess(narrow), is_late=self.is_late)

    @property
    def runs(self) -> int:
        """How often the model ran."""
        return len(self._known) * len(self._feeds)

    def _cost(self, alone: float, least: float, place: int) -> float:
        """Return the error that a group adds, squared as independent errors add up so, for each unit of its gain."""
        return float(max(alone**2 - least**2, 0.0) / self._groups[place].gain)

    def _longest_prefix(self, narrow: list[int], order: list[int]) -> list[int]:
        """Return `narrow` and the longest beginning of `order` that is within the limit beside it, found by bisection."""
        low, high = 0, len(order)
        while low < high:
            middle = (low + high + 1) // 2
            if self._excess([*narrow, *order[:middle]]) <= self._most:
                low = middle
            else:
                high = middle - 1
        return [*narrow, *order[:low]]

    def _excess(self, narrow: Iterable[int]) -> float:
        """Return error / limit with these groups narrow, the largest of all feeds and outputs; infinite after the time is up."""
        chosen = frozenset(narrow)
        if chosen not in self._known:
            if time.monotonic() > self._end:
                self.is_late = True
                return math.inf
            mark(f"result: {len(chosen)} of {len(self._groups)} groups of nodes narrow")
            switch_inputs = {
                switch: np.array(index not in chosen) for index, switch in enumerate(self._switches)
            }
            self._known[chosen] = max(
                self._measured.excess_on(feed, lambda inputs: self._model.run({**inputs, **switch_inputs}))
                for feed in self._feeds
            )
        return self._known[chosen]
