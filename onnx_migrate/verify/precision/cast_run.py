"""Runs two models of different precision as applications do, for the metrics of their outputs and the limits of the user's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnx_migrate.verdicts import Comparison, FeedNote, OutputMetrics
from onnx_migrate.verify.compare.metrics import Metrics
from onnx_migrate.verify.compare.values import paired
from onnx_migrate.verify.equivalence.feed_search import Extent, FeedSearch
from onnx_migrate.verify.equivalence.original_run import feed_notes
from onnx_migrate.verify.evaluators import OPTIMIZED, EvaluationError, Runnable, open_model
from onnx_migrate.verify.evaluators.scopes import with_own_names
from onnx_migrate.verify.kernel import Observation, Tolerance, judge
from onnx_migrate.verify.model_traits import without_draws
from onnx_migrate.verify.precision.errors import fed, in_float
from onnx_migrate.verify.settings import Settings
from onnx_migrate.verify.tolerances import tolerance_for

__all__ = ["CAST_RUN", "CastRun", "cast_run"]

CAST_RUN = "onnx_migrate.verify.precision.cast_run:cast_run"
"""The function that the child process runs."""


@dataclass(frozen=True)
class CastRun:
    """The metrics of the outputs, and the comparisons of those outputs for which the user gave limits.

    `reason` says why nothing was measured, "" otherwise.
    """

    metrics: tuple[OutputMetrics, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    feeds: tuple[FeedNote, ...] = ()
    reason: str = ""

    @property
    def limited(self) -> set[str]:
        """The names of the outputs that are judged by the user's limits."""
        return {entry.output.partition("[")[0] for entry in self.comparisons}


def cast_run(original: Runnable, result: Runnable, settings: Settings) -> CastRun:
    """Run both models with optimisation on the user's inputs, or on random ones."""
    original, result = map(with_own_names, without_draws(original, result))
    metrics, worst = Metrics(), dict[str, Comparison]()
    try:
        search = FeedSearch(
            open_model(original, OPTIMIZED),
            original.model,
            result.model,
            settings.seed,
            Extent(thorough=True),
        )
        if settings.feeds is None:
            search.generate()
        else:
            search.use(settings.feeds, settings.limits.seconds)
        model = open_model(result, OPTIMIZED)
        for feed, outputs in zip(search.feeds, search.outputs, strict=True):
            before, after = in_float(outputs), in_float(model.run(fed(feed.inputs, result.model)))
            metrics.add_all(before, after)
            for name, value in before.items():
                for entry in _judged(name, value, after[name], tolerance_for(settings.tolerance, name)):
                    worst[entry.output] = _worse(worst.get(entry.output, entry), entry)
    except EvaluationError as error:
        return CastRun(reason=f"one does not {error.failed_to}: {error}")
    seed = None if settings.feeds is not None else settings.seed
    return CastRun(metrics.results, tuple(worst.values()), feed_notes(search.feeds, seed))


def _judged(output: str, original: Any, result: Any, tolerance: Tolerance) -> list[Comparison]:
    """Compare an output if the user gave a limit for it."""
    if not tolerance.is_given:
        return []
    parts = paired(output, original, result) or [(output, original, None)]
    return [judge(Observation(*part, tolerance)) for part in parts]


def _worse(one: Comparison, other: Comparison) -> Comparison:
    def weight(entry: Comparison) -> tuple[bool, float]:
        return bool(entry.problem), entry.largest_relative

    return one if weight(one) >= weight(other) else other
