"""What the original gives: the inputs it runs on, its outputs on them, and how far rounding moves those."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from onnx_migrate.errors import UsageError
from onnx_migrate.isolate import mark
from onnx_migrate.verify.compare.informative import told
from onnx_migrate.verify.compare.noise import Noise
from onnx_migrate.verify.equivalence.inner_values import look_inside
from onnx_migrate.verify.evaluators import (
    LEVELS,
    EvaluationError,
    Evaluator,
    Runnable,
    open_model,
)
from onnx_migrate.verify.inputs.generate import Sizes, make_feed, size_plans
from onnx_migrate.verify.inputs.user_inputs import Feed, Feeds, check_feed
from onnx_migrate.verify.model_traits import exposing, nudged, resizes
from onnx_migrate.verify.verdict import FeedNote

__all__ = ["TRYING", "Baseline", "measure"]

TRYING = "original: running, sizes"
"""The stage in which sizes are tried; the plan's place follows."""

_STYLES = ("normal", "wide")
_FURTHER_STYLES = ("uniform", "pixels", "small")
_PATIENCE = 2.0
"""Seconds after which no further style of input is tried."""

Values = dict[str, Any]


@dataclass(frozen=True)
class Baseline:
    """The feeds, and by optimisation level what the original gave on each.

    An output that ONNX Runtime's optimiser gets wrong in the original is left out of `runs` at that level.

    `nearest` names the inner values that were recorded as well, by the flat output they lie above (inner.py).
    `silent` are outputs that say nothing, on any feed, and that no value above speaks for.
    """

    feeds: list[Feed]
    seed: int | None
    runs: dict[str, list[Values]]
    heard: Noise
    nearest: Mapping[str, tuple[str, ...]]
    silent: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def described(self) -> tuple[FeedNote, ...]:
        """What was fed."""
        return tuple(
            FeedNote(feed.name, self.seed, tuple((n, _shape(v)) for n, v in feed.inputs.items()))
            for feed in self.feeds
        )

    def inner_names(self, model: onnx.ModelProto) -> list[str]:
        """Return the recorded inner values that a model has by name."""
        made = {name for node in model.graph.node for name in node.output}
        return [name for names in self.nearest.values() for name in names if name in made]


def measure(
    original: Runnable,
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    feeds: Feeds | None,
    seed: int,
    first_plan: int = 0,
) -> Baseline:
    """Run the original at every level at which it runs. Raises EvaluationError where there is none.

    Sizes to make up inputs of are tried from the plan `first_plan` on (made.py).
    """
    mark("original: loading")
    model, levels = _open(original, before)
    mark("original: running")
    tried = _Tried(model, before, after, seed)
    del model
    if feeds is None:
        tried.make_up(first_plan)
    else:
        tried.take(feeds)
    nearest: Mapping[str, tuple[str, ...]] = {}
    silent = tried.silent()
    if silent and levels == LEVELS:
        mark("original: looking above the outputs that do not vary")
        inner = look_inside(original, silent, tried.inputs)
        nearest = inner.nearest
        for output, names in nearest.items():
            which = ", ".join(map(repr, names[:5]))
            tried.notes.append(f"output {output!r} does not vary; compared before it as well: {which}")
        silent = sorted(inner.lost)
        if nearest:
            tried.replace(inner.evaluator, inner.runs, nearest)
        del inner
    if feeds is None:
        tried.make_up_more(silent)
        silent = [output for output in silent if output in tried.silent()]
    if silent:
        which = ", ".join(map(repr, silent[:5]))
        tried.notes.append(f"weak proof: constant, saturated, empty or NaN for every input tried: {which}")
    heard = Noise(tried.outputs)
    runs = {levels[0]: tried.outputs}
    try:
        tried.move(heard)
        for level in levels[1:]:
            mark(f"original: running, optimisation {level}")
            other = open_model(exposing(original, tried.outputs[0]) if nearest else original, level)
            again = [other.run(feed) for feed in tried.inputs]
            torn = set().union(*(heard.torn(index, outputs) for index, outputs in enumerate(again)))
            for output in sorted(torn):
                tried.notes.append(
                    f"optimised, the original itself gives another {output!r}: held as it is only"
                )
            runs[level] = [{n: v for n, v in outputs.items() if n not in torn} for outputs in again]
            for index, outputs in enumerate(runs[level]):
                heard.listen(index, outputs)
    except EvaluationError as error:
        runs = {levels[0]: tried.outputs}
        tried.notes.append(f"the original ran without optimisation only: {error}")
    return Baseline(
        tried.feeds,
        None if feeds is not None else seed,
        runs,
        heard,
        nearest,
        tuple(silent),
        tuple(tried.notes),
    )


def _open(original: Runnable, proto: onnx.ModelProto) -> tuple[Evaluator, tuple[str, ...]]:
    try:
        return open_model(original, LEVELS[0]), LEVELS
    except EvaluationError as error:
        if resizes(proto):
            raise
        try:
            return open_model(original, "reference"), ("reference",)
        except EvaluationError as second:
            raise error from second


class _Tried:
    """The feeds that the original was found to run on, with what it gave."""

    def __init__(self, model: Evaluator, before: onnx.ModelProto, after: onnx.ModelProto, seed: int) -> None:
        self._model: Evaluator | None = model
        self._before, self._after, self._seed = before, after, seed
        self._plan: Sizes | None = None
        self._kept: list[str] = []
        self._start = time.perf_counter()
        self.feeds: list[Feed] = []
        self.outputs: list[Values] = []
        self.notes: list[str] = []

    @property
    def inputs(self) -> list[Mapping[str, Any]]:
        return [feed.inputs for feed in self.feeds]

    def silent(self) -> list[str]:
        """Return the outputs that do not vary on any feed."""
        return [output for output, tells in told(self.outputs).items() if not tells]

    def take(self, feeds: Feeds) -> None:
        """Run on the user's feeds."""
        self.feeds = [check_feed(self._before, feed) for feed in feeds.sets]
        self.outputs = [self._run(feed.inputs) for feed in self.feeds]

    def make_up(self, first_plan: int) -> None:
        """Find sizes that the model runs at, and run two styles of input."""
        first: EvaluationError | None = None
        for place, plan in enumerate(size_plans(self._before)[first_plan:], first_plan):
            mark(f"{TRYING} {place}")
            self._plan = plan
            try:
                if self._try(_STYLES[0]):
                    break
            except UsageError as error:
                raise EvaluationError(error.reason) from error
            except EvaluationError as error:
                first = first or error
        else:
            raise first or EvaluationError("no inputs of a bearable size could be made up")
        for style in _STYLES[1:]:
            self._try_or_note(style)

    def make_up_more(self, silent: list[str]) -> None:
        """Run further styles, while time is left, until two feeds make every output vary that can."""
        for style in _FURTHER_STYLES:
            spoken_for = set(self.silent()) - set(silent)
            asked = {output.name for output in self._before.graph.output} - spoken_for
            telling = sum(
                all(tells for name, tells in told([run]).items() if name in asked) for run in self.outputs
            )
            if telling >= len(_STYLES) or time.perf_counter() - self._start > _PATIENCE:
                break
            self._try_or_note(style)

    def replace(self, model: Evaluator, runs: list[Values], nearest: Mapping[str, tuple[str, ...]]) -> None:
        """Go on with a model that gives inner values too."""
        self._kept = [*self.outputs[0], *(name for names in nearest.values() for name in names)]
        self._model, self.outputs = model, [{name: run[name] for name in self._kept} for run in runs]

    def move(self, heard: Noise) -> None:
        """Let it be heard how the outputs move with their inputs' last bits; the model is given up then."""
        for index, feed in enumerate(self.inputs):
            heard.listen(index, self._run(nudged(feed, self._seed)))
        self._model = None

    def _try_or_note(self, style: str) -> None:
        try:
            self._try(style)
        except EvaluationError as error:
            self.notes.append(f"the original does not run on {style} inputs: {error}")

    def _try(self, style: str) -> bool:
        assert self._plan is not None
        values = make_feed(self._before, self._after, self._plan, style, self._seed)
        if values is None:
            return False
        self.outputs.append(self._run(values))
        self.feeds.append(Feed(style, values))
        return True

    def _run(self, inputs: Mapping[str, Any]) -> Values:
        assert self._model is not None
        outputs = self._model.run(inputs)
        return {name: outputs[name] for name in self._kept} if self._kept else outputs


def _shape(value: Any) -> tuple[int, ...] | None:
    return tuple(value.shape) if isinstance(value, np.ndarray) else None
