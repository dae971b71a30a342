"""Runs the original: finds inputs on which it runs, records its outputs, and measures how far rounding moves them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from onnx_migrate.facts.narrow_floats import is_narrow
from onnx_migrate.process import mark
from onnx_migrate.verdicts import FeedNote
from onnx_migrate.verify.compare.informative import VARYING_INPUTS, uninformative_outputs
from onnx_migrate.verify.compare.noise import Noise
from onnx_migrate.verify.compare.values import flatten
from onnx_migrate.verify.equivalence.corner_runs import CornerRuns, run_corners
from onnx_migrate.verify.equivalence.executed import not_executed
from onnx_migrate.verify.equivalence.feed_search import EXPENSIVE, Extent, FeedSearch, Values
from onnx_migrate.verify.equivalence.stages import BRANCHES_STAGE, CORNERS_STAGE, OPTIMISED_STAGE
from onnx_migrate.verify.equivalence.undefined_values import undefined_elements
from onnx_migrate.verify.equivalence.upstream_values import Nearest, expose_inner_values, nearest_among
from onnx_migrate.verify.evaluators import (
    LEVELS,
    REFERENCE,
    STRICT,
    EvaluationError,
    Evaluator,
    Runnable,
    open_model,
)
from onnx_migrate.verify.inputs.constraints.value_ranges import exact_inputs
from onnx_migrate.verify.inputs.corners.feeds import MORE
from onnx_migrate.verify.inputs.perturbed import perturbed_by_ulp
from onnx_migrate.verify.inputs.user_inputs import Feed
from onnx_migrate.verify.kernel.arrays import is_float
from onnx_migrate.verify.kernel.limits import PRECISIONS
from onnx_migrate.verify.model_traits import miscomputed_in_reference, with_attribute_data
from onnx_migrate.verify.run_count import begin_run, expect_runs, run_each
from onnx_migrate.verify.settings import Settings

__all__ = ["OriginalRun", "feed_notes", "run_original"]


_LONG = 1.0
"""Seconds of one optimised run; if a run takes longer, fewer further runs are affordable."""
_AFFORDABLE, _AFFORDABLE_LONG = 3.5, 1.5
"""How many such runs the first run, without optimisation, may have taken for a second input to be run."""
_REPLACED = PRECISIONS["float32"].ceiling
"""Share of an output's largest value. If optimisation moves an output further, it computes something else than rounding."""
_MUCH = 1e-3
"""Rounding rarely changes an output by more than this share of its largest value."""


@dataclass(frozen=True)
class OriginalRun:
    """The original's outputs on each feed; the outputs of results are compared with them.

    `seed` is that of random feeds, None for the user's. `runs` holds the outputs of every feed for each configuration of a
    runtime (evaluators), in the order they ran, the unoptimised one first. If ONNX Runtime's optimiser changes an output of the
    original itself, `runs` lacks it at that level. The last feed may have run at that level only. Corner feeds come last, and ran
    without optimisation. `noise` is how far rounding moves the outputs. `upstream` has the nearest inner values that vary, for
    each output that does not; `runs` holds those too. `notes` are weaknesses of the proof, for the report. `recorded` are further
    inner values, without optimisation, on the first feed. `expensive` is whether less was run because one run takes long. `empty`
    are outputs that the model declares to have no elements.
    """

    feeds: list[Feed]
    seed: int | None
    runs: dict[str, list[Values]]
    noise: Noise
    upstream: Nearest
    notes: tuple[str, ...]
    recorded: Values = field(default_factory=dict)
    expensive: bool = False
    empty: frozenset[str] = frozenset()

    @property
    def first(self) -> str:
        """The configuration that ran first."""
        return next(iter(self.runs))

    @property
    def all_at_both_levels(self) -> bool:
        """Whether all outputs that are compared without optimisation are compared with it too."""
        first, *others = self.runs.values()
        has_expected = any(feed.expected for feed in self.feeds)
        return not has_expected and any(
            len(runs) >= len(first)
            and all(run.keys() >= unoptimised.keys() for unoptimised, run in zip(first, runs, strict=False))
            for runs in others
        )

    def inputs(self, configuration: str) -> list[Mapping[str, Any]]:
        """Return the values of each feed that was run in this configuration."""
        return [feed.inputs for feed in self.feeds[: len(self.runs[configuration])]]

    @property
    def feed_notes(self) -> tuple[FeedNote, ...]:
        """Name, seed and shapes of each feed, for the verdict."""
        return feed_notes(self.feeds, self.seed)

    def leave_out_undefined(self, original: Runnable) -> None:
        """Find the elements of outputs that the standard leaves undefined, so that they are not compared."""
        for index, output, elements in undefined_elements(original, self.first, self.inputs(self.first)):
            self.noise.leave_out(index, output, elements)

    def inner_names(self, model: onnx.ModelProto) -> list[str]:
        """Return the inner values that a model computes under the same name."""
        computed = {name for node in model.graph.node for name in node.output}
        return [name for name in self.upstream.inner if name in computed]


def feed_notes(feeds: Sequence[Feed], seed: int | None) -> tuple[FeedNote, ...]:
    """Return name, seed and shapes of each feed, for a verdict; the seed is None for the user's inputs."""

    def shape(value: object) -> tuple[int, ...] | None:
        return tuple(value.shape) if isinstance(value, np.ndarray) else None

    # One note stands for the further random feeds of a model with few elements, which may be a hundred.
    once = {feed.name if feed.name == MORE else index: feed for index, feed in enumerate(feeds)}
    return tuple(
        FeedNote(
            feed.name, seed, tuple((name, shape(value)) for name, value in feed.inputs.items()), feed.corner
        )
        for feed in once.values()
    )


def run_original(
    original: Runnable, result: Runnable, settings: Settings, extent: Extent | None = None
) -> OriginalRun:
    """Run the original in every configuration in which it runs; of the result only the inputs matter.

    Raises EvaluationError if the original runs in none, UsageError for the user's inputs that do not fit it.
    """
    extent = extent or Extent()
    mark("original: loading")
    model, configurations = _open(original, extent.recorded)
    mark("original: running")
    loaded = model.notes
    search = FeedSearch(
        model, with_attribute_data(original), with_attribute_data(result), settings.seed, extent
    )
    del model  # the search may replace it; then it is freed
    if settings.feeds is None:
        search.generate()
        search.search_domain()
    else:
        search.use(settings.feeds, settings.limits.seconds)
    search.notes.extend(loaded)
    # With inner values of float16 as outputs, ONNX Runtime rounds them, and computes other outputs than the original's.
    looks_inside = configurations == LEVELS and not is_narrow(original.model)
    upstream, constant = _look_further(original, search, settings, inner=looks_inside)
    exact = exact_inputs(original.model)
    corners = CornerRuns()
    if CORNERS_STAGE in extent.ended:
        search.notes.append(f"corner inputs were not used: on one of them, {extent.ended[CORNERS_STAGE]}")
    elif extent.corners:
        mark(CORNERS_STAGE)
        corners = run_corners(search, settings.seed, exact, magnitudes=extent.magnitudes)
        mark("original: running")
    _note_weakness(search, constant, corners)
    outputs = list(search.outputs)
    noise = Noise(outputs)
    runs = {configurations[0]: outputs}
    try:
        _observe_moved_inputs(search, noise, settings.seed, exact, len(configurations), len(corners.feeds))
        corners.append_to(search, noise, outputs)
        search.release_model()
        for configuration in configurations[1:]:
            if OPTIMISED_STAGE in extent.ended:
                raise EvaluationError(extent.ended[OPTIMISED_STAGE])
            mark(f"original: running, {configuration}")
            inner = search.outputs[0] if upstream.names else ()
            model = open_model(original, configuration, inner)
            runs[configuration] = _run_again(model, search, noise, once_more=extent.once_more)
    except (EvaluationError, MemoryError) as error:
        runs = {configurations[0]: outputs}
        search.notes.append(
            f"models are compared without optimisation only, because the original then fails: {error}"
        )
    ended = extent.ended.get(BRANCHES_STAGE, "")
    search.notes.extend(not_executed(original, search.inputs, configurations[0], ended))
    seed = None if settings.feeds is not None else settings.seed
    return OriginalRun(
        search.feeds,
        seed,
        runs,
        noise,
        upstream,
        tuple(search.notes),
        search.recorded,
        search.expensive,
        _empty_outputs(original.model),
    )


def _empty_outputs(model: onnx.ModelProto) -> frozenset[str]:
    """Return the outputs with a declared length of 0, so that they have no elements to compare."""
    return frozenset(
        output.name
        for output in model.graph.output
        if any(dim.HasField("dim_value") and not dim.dim_value for dim in output.type.tensor_type.shape.dim)
    )


def _look_further(
    original: Runnable, search: FeedSearch, settings: Settings, *, inner: bool
) -> tuple[Nearest, list[str]]:
    """Find inner values and inputs for outputs that do not vary; inner values only if they are looked for.

    Returns the outputs too for which nothing was found.
    """
    upstream = Nearest()
    uninformative = search.uninformative()
    if uninformative and inner:
        upstream = _look_upstream(original, search, uninformative)
        uninformative = sorted(upstream.incomplete)
    if settings.feeds is None:
        search.generate_more(uninformative)
        uninformative = [output for output in uninformative if output in search.uninformative()]
    return upstream, uninformative


def _note_weakness(search: FeedSearch, constant: list[str], corners: CornerRuns) -> None:
    """Note the outputs that corner feeds do not make vary either."""
    # Outputs of other shapes cannot be compared with the usual ones.
    runs = [*search.outputs, *corners.of_shapes(search.outputs[0])] if constant else []
    uninformative = [output for output in uninformative_outputs(runs) if output in constant]
    if uninformative:
        output_names = ", ".join(map(repr, uninformative[:5]))
        search.notes.append(
            f"weak proof: constant, saturated, empty or NaN for all inputs tried, so that differences may not show:"
            f" {output_names}; {VARYING_INPUTS}"
        )


def _observe_moved_inputs(
    search: FeedSearch, noise: Noise, seed: int, exact: Set[str], configurations: int, corners: int
) -> None:
    """Run inputs that are moved by one unit in the last place. If one run takes long, run only those that need it."""
    count = len(search.feeds)
    moved = [index for index in range(count) if not search.expensive or _has_discrete(search.outputs[index])]
    expect_runs(len(moved) + count * (configurations - 1), count, corners)
    for index in moved:
        begin_run(f"input {index + 1} of {count}")
        noise.observe(index, search.run(perturbed_by_ulp(search.inputs[index], seed, exact)))


def _has_discrete(outputs: Values) -> bool:
    """Whether rounding may change an output throughout: an index, or a number of detections."""
    arrays = (array for name, value in outputs.items() for _, array in flatten(name, value))
    return any(array is None or not is_float(array) for array in arrays)


def _open(original: Runnable, inner: Sequence[str]) -> tuple[Evaluator, tuple[str, ...]]:
    """Load the original, in ONNX Runtime if that loads it, and return in which configurations it is run."""
    try:
        return open_model(original, LEVELS[0], inner), LEVELS
    except EvaluationError as error:
        # ONNX Runtime lacks kernels for some narrow types; strict evaluation computes them in wider ones.
        other = STRICT if error.limit and is_narrow(original.model) else REFERENCE
        if other == REFERENCE and miscomputed_in_reference(original.model):
            raise
        try:
            return open_model(original, other, inner), (other,)
        except EvaluationError as second:
            raise error from second


def _look_upstream(original: Runnable, search: FeedSearch, outputs: list[str]) -> Nearest:
    """Record the nearest varying values upstream of outputs that do not vary, if they are not in the run already made."""
    nearest = None
    # One run may already have recorded the values.
    if len(search.feeds) == 1:
        nearest = nearest_among(original.model, outputs, {**search.outputs[0], **search.recorded})
    if nearest is not None:
        search.keep_recorded(nearest.inner)
    else:
        mark("original: running, values upstream of outputs that do not vary")
        inner = expose_inner_values(original, outputs, search.inputs)
        nearest = inner.found
        if nearest.names:
            search.replace_model(inner.evaluator, inner.runs, nearest.inner)
    for output, names in nearest.names.items():
        inner_names = ", ".join(map(repr, names[:5]))
        search.notes.append(
            f"output {output!r} is the same for all inputs tried, so inner values that it is computed from are"
            f" compared as well: {inner_names}"
        )
    return nearest


def _run_again(model: Evaluator, search: FeedSearch, noise: Noise, *, once_more: bool) -> list[Values]:
    """Run the feeds in another configuration, observe the noise, and skip outputs that differ by more than rounding.

    With `once_more`, it may run one more input: the corner feed, or an input that did not run without optimisation. It does so
    only if less was run before and the extra run costs little beside that.
    """
    start, count = time.perf_counter(), len(search.outputs)
    again = list(run_each(model, search.inputs, range(count)))
    seconds = (time.perf_counter() - start) / len(again)
    # Two more runs with optimisation, of so many seconds each, may add little to what is run anyway.
    affordable = search.seconds <= max(
        EXPENSIVE, (_AFFORDABLE if seconds <= _LONG else _AFFORDABLE_LONG) * seconds
    )
    beyond = _outputs_beyond(noise, again, _REPLACED)
    for output in sorted(beyond):
        search.notes.append(
            f"ONNX Runtime's optimisation changes {output!r} of the original itself; it is compared without optimisation"
            " only"
        )
    for output in sorted(_outputs_beyond(noise, again, _MUCH) - beyond):
        search.notes.append(
            f"ONNX Runtime's optimisation changes {output!r} of the original itself by more than 0.1 % of its"
            " largest value, as quantised kernels do. With optimisation, the result may differ by as much"
        )
    compared_runs = [{name: value for name, value in run.items() if name not in beyond} for run in again]
    for index, run in enumerate(compared_runs):
        noise.observe(index, run)
    if not (once_more and search.expensive and affordable):
        return compared_runs
    corner = search.feeds[count] if len(search.feeds) > count else None
    feed = corner or search.further()
    if feed is not None:
        with suppress(EvaluationError):  # these inputs may not fit
            begin_run(f"input {len(compared_runs) + 1}")
            run = {name: value for name, value in model.run(feed.inputs).items() if name in compared_runs[0]}
            if corner is not None:
                noise.observe(count, run)
            else:
                noise.assume(run)
                search.feeds.append(feed)
            compared_runs.append(run)
    return compared_runs


def _outputs_beyond(noise: Noise, again: Sequence[Values], share: float) -> set[str]:
    """Return the outputs that another run of any feed changes by more than a share of their scale."""
    return {name for index, run in enumerate(again) for name in noise.outputs_beyond(share, index, run)}
