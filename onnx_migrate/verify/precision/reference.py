"""Runs an original with every value rounded, on the inputs of the search, and measures the error of rounding alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from statistics import median
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_migrate.cached import cached_property
from onnx_migrate.facts.narrow_floats import NARROW
from onnx_migrate.facts.typed_graph import Frame, frames_of
from onnx_migrate.facts.value_types import TypeTable
from onnx_migrate.model.graphs import producers
from onnx_migrate.verify.equivalence.common_values import shapes_of
from onnx_migrate.verify.equivalence.feed_search import Extent, FeedSearch
from onnx_migrate.verify.evaluators import STRICT, EvaluationError, Runnable, open_model
from onnx_migrate.verify.inputs.constraints.value_ranges import exact_inputs
from onnx_migrate.verify.inputs.generate import WIDE
from onnx_migrate.verify.inputs.perturbed import perturbed_by_ulp, with_weights_moved
from onnx_migrate.verify.inputs.user_inputs import Feed
from onnx_migrate.verify.model_traits import with_attribute_data
from onnx_migrate.verify.precision.decisions import decided_outputs, decides
from onnx_migrate.verify.precision.errors import error_of, in_float, largest_of
from onnx_migrate.verify.precision.feeds import (
    SMALL,
    SMOOTH,
    ZEROS,
    hide_rows,
    keep_to_domain,
    run_on_scene,
    run_on_waves,
)
from onnx_migrate.verify.precision.run_time import affordable, seconds_of_run
from onnx_migrate.verify.precision.scenes import SCENE
from onnx_migrate.verify.settings import Settings

__all__ = [
    "FEWEST",
    "Reference",
    "bytes_of",
    "error_on",
    "floors_of_narrow",
    "outputs_in",
    "recorded",
    "reference_of",
]

_DISTRIBUTIONS = ("normal", "uniform", SMALL, ZEROS, WIDE)
"""Input distributions: different magnitudes and signs overflow or vanish at different nodes."""

_FIRST = ("normal", SCENE, ZEROS, SMOOTH, "uniform", WIDE, SMALL)
"""The kinds of inputs in the order in which a slow model runs on them, as far as its time allows."""

_FEWEST_KINDS = 2
"""Kinds of inputs on which even a slow model runs."""

_WORK, _RUNS = 30.0, 5.0
"""Estimated seconds that runs on all inputs may take, and runs on each of them: of the original, rounded, and of a result."""

_FEW = 100
"""Outputs with fewer elements share one largest value for all inputs tried, because one draw of few numbers says little of it."""

_BATCHES = (1, 2, 3)
"""One sample first: rounding is that of each, and a run of two takes twice as long."""

_LARGE = 1 << 20
"""Numbers of an input, for example an image; one draw of so many says as much as several draws of a smaller one."""

_MORE_DRAWS = 4
"""A light model with few inputs gets so many times as many draws, because each draw says little and takes a millisecond."""

_WAVES = 4
"""How many feeds of waves there are after further draws."""

_FEW_NUMBERS, _LIGHT, _HEAVY = 1 << 12, 1 << 22, 1 << 26
"""Limits on counts of numbers.

Up to the first two, of inputs and of weights, more draws are made. From the third, of weights, fewer inputs are run.
"""

_WITH_OTHERS = 1 << 22
"""If inner values take fewer bytes, they are computed on all inputs: that takes less time than to load the model again."""

FEWEST = 200
"""Least number of inner values that one run records; the first run records so many."""


@dataclass
class Reference:
    """The outputs of an original on some inputs, with the error of rounding alone."""

    runnable: Runnable
    feeds: list[Feed] = field(default_factory=list)
    outputs: list[dict[str, Any]] = field(default_factory=list)
    floors: dict[int, dict[str, float]] = field(default_factory=dict)
    """The errors of outputs by rounding alone, by the places of feeds for which they are known."""
    floor_shares: dict[int, dict[str, float]] = field(default_factory=dict)
    """By places of feeds, of outputs that are `decided`, the share of elements that rounding alone moves beyond its limit."""
    own_floors: dict[str, float] | None = None
    """The floors of a narrow original, once they are known."""
    others: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    """Outputs in other configurations than STRICT, by these and the places of feeds."""
    order: list[int] = field(default_factory=list)
    """The places of feeds, those first on which a result was off last."""
    failing: dict[int, None] = field(default_factory=dict)
    """The places of feeds on which results were off, the last one at the end: the next result has to agree on all of them."""
    way: str = STRICT
    """The configuration in which a result was off last."""
    tried: dict[object, Any] = field(default_factory=dict)
    """The last tries in one session (groups.py); they are repeated if a result has too large an error on other inputs."""
    search: FeedSearch | None = None
    """The search that draws inputs again, with the model loaded; None once that is done."""
    draws: int = 1
    """Number of draws of inputs in all."""
    seconds: float = 0.0
    """About how long one run takes, every value rounded."""
    at_once: int = FEWEST
    """How many inner values should not take too much memory."""
    domain: str = ""
    """The domain of the input floats, a key of feeds.DOMAINS, if the model computes few numbers on random ones."""
    _inner: tuple[int, dict[str, Any]] = field(default_factory=lambda: (-1, {}))

    def is_off_on(self, place: int, way: str) -> None:
        """Move the feed at a place, and a configuration, to the front, because the next result most likely fails there too."""
        self.way = way
        self.failing.pop(place, None)
        self.failing[place] = None
        self.order.remove(place)
        self.order.insert(0, place)

    def draw_again(self) -> Iterable[int]:
        """Run on further draws of inputs, if that was not done before; return the places of these."""
        search, self.search = self.search, None
        if search is None:
            return ()
        for draw in range(1, self.draws):
            search.draw_again(draw)
        search.run_also(["uniform"])
        names = {feed.name for feed in self.feeds}
        for draw in range(1, _WAVES):
            if SMOOTH in names:
                run_on_waves(search, draw)
        if SCENE in names:
            run_on_scene(search, 1)
        if self.domain:
            keep_to_domain(search, len(self.outputs), self.domain)
        more = range(len(self.outputs), len(search.outputs))
        self.feeds, self.outputs = search.feeds, [in_float(run) for run in search.outputs]
        self.order += more
        return more

    def inner_on(self, place: int) -> dict[str, Any]:
        """Return the inner values kept for the feed at a place, for callers to extend. Those of other feeds are dropped."""
        if self._inner[0] != place:
            self._inner = place, {}
        return self._inner[1]

    def scale(self, name: str) -> float:
        """Return the usual largest value of a small output, on all inputs but small ones; 0 for an output with many elements.

        A dozen numbers of one draw may all be small. The usual one is the median of the largest values on each input.
        """
        values = [
            run[name]
            for feed, run in zip(self.feeds, self.outputs, strict=False)
            if feed.name not in (SMALL, ZEROS, WIDE, SCENE) and getattr(run[name], "size", _FEW) < _FEW
        ]
        return median(map(largest_of, values)) if values else 0.0

    @cached_property
    def graph(self) -> Frame:
        """Return the main graph, with the types of its values."""
        return frames_of(self.runnable.model, TypeTable(self.runnable.model))[0]

    @cached_property
    def decides(self) -> bool:
        """Whether the original decides by numbers."""
        return decides(self.graph)

    @cached_property
    def decided(self) -> frozenset[str]:
        """The outputs that depend on a choice among numbers."""
        return decided_outputs(self.graph)


_references: dict[tuple[bytes, str, int, int, str], Reference] = {}
"""The reference of the original that ran last in this process."""


def reference_of(
    original: Runnable, result: Runnable, settings: Settings, draws: int, *, recording: bool = False
) -> Reference:
    """Return an original's outputs on so many draws of inputs, or on the user's; the last original's are kept.

    With `recording` it also has the first inner values on the first of generated inputs. Raises EvaluationError if the original
    does not load or run.
    """
    # A result with other dims needs inputs of other shapes, and therefore a reference of its own.
    shapes = "".join(str(value.type.tensor_type.shape) for value in result.model.graph.input)
    # A process serves several calls, whose inputs differ.
    feeds_key = "" if settings.feeds is None else settings.feeds.key
    key = (original.structure or b"", shapes, draws, settings.seed, feeds_key)
    if key not in _references:
        reference = Reference(original)
        weights = sum(
            prod(value.tensor.dims) for value in reference.graph.values.values() if value.tensor is not None
        )
        inner = recorded(reference)[:FEWEST] if recording and settings.feeds is None else []
        first = _DISTRIBUTIONS[0]
        extent = Extent(distributions=(first,), batches=_BATCHES, thorough=True, recorded=tuple(inner))
        model = open_model(original, STRICT, inner)
        search = FeedSearch(
            model, with_attribute_data(original), with_attribute_data(result), settings.seed, extent
        )
        if settings.feeds is None:
            search.generate()
            if bytes_of(search.recorded) > _WITH_OTHERS:
                search.replace_model(open_model(original, STRICT), search.outputs, ())
            reference.seconds = _seconds(search, original)
            kinds, fast = _kinds(reference.seconds, weights)
            search.run_also(name for name in _DISTRIBUTIONS[1:] if name in kinds)
            if SMOOTH in kinds:
                run_on_waves(search, settings.seed)
            if SCENE in kinds:
                run_on_scene(search, settings.seed)
            reference.domain = keep_to_domain(search)
            hide_rows(search, reference.graph, None if kinds == {*_FIRST} else 1)
        else:
            search.use(settings.feeds, settings.limits.seconds)
            reference.seconds = _seconds(search, original)
        reference.inner_on(0).update(search.recorded)
        search.recorded = {}
        reference.feeds, reference.outputs = search.feeds, [in_float(run) for run in search.outputs]
        reference.order = list(range(len(search.feeds)))
        arrays = [value for value in search.inputs[0].values() if isinstance(value, np.ndarray)]
        count = sum(array.size for array in arrays)
        if draws > 1 and settings.feeds is None and fast and count <= _LARGE:
            more = _MORE_DRAWS if count <= _FEW_NUMBERS and weights <= _LIGHT else 1
            reference.search, reference.draws = search, 1 + more * (draws - 1)
            if reference.decides:
                reference.draw_again()
        # The outputs of all feeds take much memory, so those of earlier models go.
        for other in [other for other in _references if other[0] != key[0] or other[3:] != key[3:]]:
            del _references[other]
        _references[key] = reference
    return _references[key]


def _seconds(search: FeedSearch, original: Runnable) -> float:
    """Return about how many seconds one run takes on the inputs of a search."""
    return seconds_of_run(original.model, shapes_of(search.feeds[0].inputs), search.fastest)


def _kinds(seconds: float, weights: int) -> tuple[set[str], bool]:
    """Return the kinds of inputs on which a model runs, and whether these are all for so many weights: a slow one has fewer."""
    kinds = [kind for kind in _FIRST if weights <= _HEAVY or kind not in (SMOOTH, SCENE, WIDE)]
    count = affordable(_WORK / _RUNS, seconds, _FEWEST_KINDS, len(kinds))
    return {*kinds[:count]}, count == len(kinds)


def bytes_of(values: Mapping[str, Any]) -> int:
    """Return how much memory arrays take."""
    return sum(value.nbytes for value in values.values() if isinstance(value, np.ndarray))


def recorded(reference: Reference, result: Runnable | None = None) -> list[str]:
    """Return the computed floats of the original's main graph; with a result, only those that it computes too."""
    result_makers = None if result is None else producers(result.model.graph)
    return [
        value.name
        for step in reference.graph.steps
        for value in step.made
        if value.tensor is None
        and (value.dtype == TensorProto.FLOAT or value.dtype in NARROW)
        and not value.container
        and (result_makers is None or value.name in result_makers)
    ]


def outputs_in(reference: Reference, way: str, place: int) -> Mapping[str, Any]:
    """Return the outputs in a configuration on the feed at a place; those in STRICT if the model does not run in it."""
    if (way, place) not in reference.others:
        try:
            run = in_float(open_model(reference.runnable, way).run(reference.feeds[place].inputs))
        except EvaluationError:
            run = reference.outputs[place]
        reference.others[way, place] = run
    return reference.others[way, place]


def error_on(
    reference: Reference,
    place: int,
    name: str,
    run: Mapping[str, Any],
    expected: Mapping[str, Any] | None = None,
    least: float = 0.0,
) -> float:
    """Return the error of an output on the feed at a place, relative to `expected` or the reference's own outputs.

    The error is a share of the largest value, or of `least` if that is larger.
    """
    feed = reference.feeds[place].name
    expected = reference.outputs[place] if expected is None else expected
    # These inputs have a magnitude of their own, so the usual largest value says nothing about them.
    scale = 0.0 if feed in (SMALL, WIDE) else reference.scale(name)
    error = error_of(expected[name], run[name], max(scale, least))
    return 0.0 if feed == ZEROS and np.isfinite(error) else error


def floors_of_narrow(reference: Reference, settings: Settings, *ways: str) -> dict[str, float]:
    """Return the error of each output of a narrow original that these ways of running, and rounding to a neighbour, cause.

    The function rounds weights and inputs to a neighbour. An error is infinite if the original overflows in one of these runs
    only. Each error is the worst of all feeds.
    """
    exact, seed = exact_inputs(reference.runnable.model), settings.seed
    feed_inputs: list[Mapping[str, Any]] = [feed.inputs for feed in reference.feeds]
    moved: list[Mapping[str, Any]] = [perturbed_by_ulp(inputs, seed, exact) for inputs in feed_inputs]
    tries = [(reference.runnable, way, feed_inputs) for way in ways]
    tries.append((with_weights_moved(reference.runnable, seed), STRICT, moved))
    floors: dict[str, float] = {}
    for runnable, configuration, inputs in tries:
        try:
            model = open_model(runnable, configuration)
            runs = [in_float(model.run(each)) for each in inputs]
        except EvaluationError:
            continue
        for index, run in enumerate(runs):
            for name in reference.outputs[0]:
                floors[name] = max(error_on(reference, index, name, run), floors.get(name, 0.0))
    return floors
