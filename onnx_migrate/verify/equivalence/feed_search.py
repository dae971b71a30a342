"""Finds inputs that the original runs on: the user's, or random ones at sizes that are tried in turn."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from onnx_migrate.errors import UsageError
from onnx_migrate.messages import size_text
from onnx_migrate.process import mark
from onnx_migrate.process.limits import memory_limit
from onnx_migrate.verify.compare.informative import is_informative, uninformative_outputs
from onnx_migrate.verify.equivalence.finite_shares import mostly_nan
from onnx_migrate.verify.equivalence.stages import SIZES_STAGE
from onnx_migrate.verify.evaluators import EvaluationError, Evaluator
from onnx_migrate.verify.inputs.domain import feeds_of_domains
from onnx_migrate.verify.inputs.generate import WIDE, RandomInputs
from onnx_migrate.verify.inputs.refusals import corrected
from onnx_migrate.verify.inputs.sizes import BATCHES, size_choices
from onnx_migrate.verify.inputs.stored import bytes_of, spaced
from onnx_migrate.verify.inputs.user_inputs import Feed, Feeds, check_feed
from onnx_migrate.verify.run_count import begin_run

__all__ = ["EXPENSIVE", "Extent", "FeedSearch", "Values"]


_DISTRIBUTIONS = ("normal", WIDE)
_FURTHER_DISTRIBUTIONS = ("uniform", "pixels", "small")
_PATIENCE = 2.0
"""Seconds after which no further distribution is tried."""
EXPENSIVE = 0.1
"""Seconds that one run may take; of a model that takes longer, less is run (docs/verification.md)."""

_TIME, _RUNS = 0.5, 12
"""Share of the time limit that runs on the user's inputs may take, and the runs of each, half of them of results."""

_MEMORY, _COPIES = 0.25, 4
"""Share of the memory limit that outputs on the user's inputs may take, and the number of runs that keep their outputs."""

_LONGEST_SEARCH = 30.0
"""Most seconds for finding the first input, if a second one is run as well."""

Values = dict[str, Any]
"""Values by name."""


@dataclass(frozen=True)
class Extent:
    """How much of the original is run.

    Random inputs have the sizes from the choice `first_choice` on (inputs/sizes.py). The first run also records the inner values
    `recorded`. If `thorough`, everything is run, however long it takes. If less is run and `once_more` is set, a second input
    runs with optimisation, because such a run costs least. `distributions` are the distributions to run, and `batches` the sizes
    of an open batch to try; both start with the first one. `corners` asks for corner feeds as well, `magnitudes` for large and
    small numbers among them. `ended` has steps that ended an earlier process, with the way in which they did. Such steps are
    skipped.
    """

    first_choice: int = 0
    recorded: tuple[str, ...] = ()
    thorough: bool = False
    once_more: bool = False
    distributions: tuple[str, ...] = _DISTRIBUTIONS
    batches: tuple[int, ...] = BATCHES
    corners: bool = False
    magnitudes: bool = True
    ended: Mapping[str, str] = field(default_factory=dict)


class FeedSearch:
    """The feeds that the original was found to run on, and its `outputs` on each of them.

    If the original leaves a dim open that is fixed in the result, the inputs have the result's size. `recorded` has inner values
    of the first feed. `expensive` is whether one run takes so long that less is run. `seconds` is the time of the first run.
    `notes` are sentences for the report about feeds that do not run.
    """

    def __init__(
        self, model: Evaluator, original: onnx.ModelProto, result: onnx.ModelProto, seed: int, extent: Extent
    ) -> None:
        self._model: Evaluator | None = model
        self._original, self._extent = original, extent
        choices = size_choices(original, extent.batches)
        self._choices = [RandomInputs(original, result, choice, seed) for choice in choices]
        self._source: RandomInputs | None = None
        """The source of random inputs, at the sizes that were found; None for the user's inputs."""
        self._draw = 0
        self._kept = [output.name for output in original.graph.output]
        self._start = time.perf_counter()
        self.recorded: Values = {}
        self.expensive, self.seconds = False, 0.0
        self.fastest = float("inf")
        """Seconds of the fastest run so far: the first one allocates, and other programs may slow any."""
        self.feeds: list[Feed] = []
        self.outputs: list[Values] = []
        self.notes: list[str] = []

    @property
    def source(self) -> RandomInputs | None:
        """The source of random inputs, at sizes at which the original runs; None if the inputs are the user's."""
        return self._source

    @property
    def inputs(self) -> list[Mapping[str, Any]]:
        """Return the values of each feed."""
        return [feed.inputs for feed in self.feeds]

    def uninformative(self) -> list[str]:
        """Return the outputs that do not vary on any feed."""
        return uninformative_outputs(self.outputs)

    def use(self, feeds: Feeds, seconds: float | None = None) -> None:
        """Run on the user's feeds, or on as many as the memory and these seconds allow.

        Raises UsageError if one does not fit the model, and EvaluationError.
        """
        self.feeds = [check_feed(self._original, feed) for feed in feeds.sets]
        self.notes.extend(feeds.notes)
        self._run_stored(self.feeds[0])
        self._leave_out(seconds)
        for feed in self.feeds[1:]:
            self._run_stored(feed)

    def _run_stored(self, feed: Feed) -> None:
        # The file is read here: an evaluator would take an unreadable one for a failure of the model.
        self.outputs.append(self._first_run(dict(feed.inputs), len(self.feeds)))

    def _leave_out(self, seconds: float | None) -> None:
        """Leave feeds out if all of them would take too much time or memory, by the first run; a note says so."""
        count, memory, size = len(self.feeds), memory_limit(), max(1, bytes_of(self.outputs[0]))
        in_time = count if seconds is None else int(_TIME * seconds / max(_RUNS * self.seconds, 1e-9))
        in_memory = count if memory is None else int(_MEMORY * memory / (_COPIES * size))
        feed_count = max(1, min(count, in_time, in_memory))
        if feed_count == count:
            return
        # Feeds from the whole list show more than its beginning.
        self.feeds = spaced(self.feeds, feed_count)
        cause = f"one run takes {self.seconds:.2g} s; --timeout allows more"
        if in_memory < in_time:
            cause = f"the outputs of one take {size_text(size)}; --memory-limit allows more"
        self.notes.append(
            f"the models were run on {feed_count:,} of {count:,} sets of inputs, because {cause}"
        )

    def generate(self) -> None:
        """Find sizes that the model runs at, and run the distributions of input.

        If the model runs at none, the runtime's error messages help to correct two choices. These are the first choice, and the
        first one in which all lengths are the same. Raises the EvaluationError of the first choice if that fails too.
        """
        refusals: dict[int, EvaluationError] = {}
        first_choice = self._extent.first_choice
        for index, source in enumerate(self._choices[first_choice:], first_choice):
            mark(f"{SIZES_STAGE} {index}")
            self._source = source
            try:
                if self._try(_DISTRIBUTIONS[0]):
                    break
            except UsageError as error:
                raise EvaluationError(error.reason) from error
            except EvaluationError as error:
                # No other size helps if this runtime lacks an operator.
                if error.limit:
                    raise
                refusals[index] = error
        else:
            if not self._correct(refusals):
                first = next(iter(refusals.values()), None)
                raise first or EvaluationError(
                    "at all sizes tried, its inputs take more than 256 MB each, or 1 GB together"
                )
        self.run_also(self._extent.distributions[1:])

    def run_also(self, distributions: Iterable[str]) -> None:
        """Run further distributions, at the sizes that were found; run none if the search for sizes took long."""
        if not self.expensive and time.perf_counter() - self._start < _LONGEST_SEARCH:
            for distribution in distributions:
                self._try_or_note(distribution)

    def draw_again(self, draw: int) -> None:
        """Run the first distribution with other values, at the sizes that were found."""
        self._draw = draw
        self._try_or_note(self._extent.distributions[0])

    def generate_more(self, needed: Iterable[str]) -> None:
        """Run further distributions until two feeds make every output vary that can, or until time runs out.

        Only outputs in `needed` count among those that do not vary: inner values are compared instead of the others.
        """
        for distribution in (*(_DISTRIBUTIONS[1:] if self.expensive else ()), *_FURTHER_DISTRIBUTIONS):
            replaced = set(self.uninformative()) - set(needed)
            compared = {output.name for output in self._original.graph.output} - replaced
            informative = sum(
                all(is_informative([value]) for name, value in run.items() if name in compared)
                for run in self.outputs
            )
            enough = 1 if self.expensive else len(_DISTRIBUTIONS)
            if informative >= enough or time.perf_counter() - self._start > _PATIENCE:
                break
            self._try_or_note(distribution)

    def search_domain(self) -> None:
        """Run a feed of the first domain that gives no output with many NaN, if all feeds so far gave one."""
        if self._source is None or not mostly_nan(self.outputs):
            return
        for feed in feeds_of_domains(self._source):
            if time.perf_counter() - self._start > _PATIENCE:
                break
            with suppress(EvaluationError):  # these inputs are a guess
                outputs = self.run(feed.inputs)
                if not mostly_nan([outputs]):
                    self.feeds.append(feed)
                    self.outputs.append(outputs)
                    self.notes.append(
                        "more than 10 % of an output is NaN on random inputs of both signs. The original therefore also ran"
                        f" on inputs that are {feed.name}"
                    )
                    return

    def replace_model(self, model: Evaluator, runs: Sequence[Values], inner: Iterable[str]) -> None:
        """Continue with a model that outputs these inner values as well; `runs` are its outputs on the feeds so far."""
        self._kept = [*self.outputs[0], *inner]
        self._model, self.outputs = model, [{name: run[name] for name in self._kept} for run in runs]

    def further(self) -> Feed | None:
        """Return a feed of the second distribution, which is not run; None if the inputs are the user's, or too large."""
        run = {feed.name for feed in self.feeds}
        distributions = (name for name in (*_DISTRIBUTIONS, *_FURTHER_DISTRIBUTIONS) if name not in run)
        distribution = next(distributions, None)
        if self._source is None or distribution is None:
            return None
        values = self._generated(distribution)
        return None if values is None else Feed(distribution, values)

    def keep_recorded(self, inner: Sequence[str]) -> None:
        """Count these of the recorded values among the outputs from now on; there is one feed so far."""
        self._kept += inner
        self.outputs = [{**self.outputs[0], **{name: self.recorded[name] for name in inner}}]

    def run(self, inputs: Mapping[str, Any]) -> Values:
        """Run the original. Raises EvaluationError."""
        assert self._model is not None
        outputs = self._model.run(inputs)
        return {name: outputs[name] for name in self._kept}

    def _first_run(self, inputs: Mapping[str, Any], count: int = 0) -> Values:
        """Run a feed for the first time; on the first feed measure the time, and keep the recorded values.

        `count` is how many feeds there are, 0 if that is not known yet.
        """
        assert self._model is not None
        begin_run(f"input {len(self.outputs) + 1}" + (f" of {count}" if count else ""))
        start, processor = time.perf_counter(), time.process_time()
        outputs = self._model.run(inputs)
        # On a busy machine a run waits, so its processor time may be nearer to the time of the run alone.
        elapsed = min(time.perf_counter() - start, time.process_time() - processor)
        self.fastest = min(self.fastest, elapsed)
        if not self.outputs:
            self.seconds = elapsed
            if not self._extent.thorough and self.seconds > EXPENSIVE:
                self.expensive = True
                self.notes.append(f"fewer runs were made, because one takes {self.seconds:.1f} s")
            self.recorded = {name: outputs[name] for name in self._extent.recorded}
        return {name: outputs[name] for name in self._kept}

    def release_model(self) -> None:
        """Free the loaded model; nothing can be run afterwards."""
        self._model = None

    def _correct(self, refusals: Mapping[int, EvaluationError]) -> bool:
        """Run on inputs that are corrected, and return whether there are any."""
        mark(f"{SIZES_STAGE} {len(self._choices) - 1}")
        lengths = [source.choice.length for source in self._choices]
        equal_lengths = [index for index in refusals if lengths[index] != lengths[0]]
        for index in [*list(refusals)[:1], *equal_lengths[:1]]:
            corrected_source = corrected(self._choices[index], self.run, refusals[index])
            if corrected_source is not None:
                self._source = corrected_source
                return self._try(_DISTRIBUTIONS[0])
        return False

    def _try_or_note(self, distribution: str) -> None:
        try:
            self._try(distribution)
        except (EvaluationError, MemoryError) as error:
            self.notes.append(
                f"the original does not run on {distribution!r} random inputs, so onnx-migrate skips them: {error}"
            )

    def _try(self, distribution: str) -> bool:
        values = self._generated(distribution)
        if values is None:
            return False
        try:
            outputs = self._first_run(values)
        except EvaluationError:
            # Padding in the inputs may be what the model refuses.
            plain = self._generated(distribution, padding=False)
            arrays = [name for name in values if isinstance(values[name], np.ndarray)]
            if plain is None or all(np.array_equal(values[name], plain[name]) for name in arrays):
                raise
            values, outputs = plain, self._first_run(plain)
        self.outputs.append(outputs)
        self.feeds.append(Feed(distribution, values))
        return True

    def _generated(self, distribution: str, *, padding: bool = True) -> Values | None:
        """Return inputs; those of the first distribution have no padding, because their run decides about sizes."""
        assert self._source is not None
        padding = padding and distribution != _DISTRIBUTIONS[0]
        return self._source.feed(distribution, padding=padding, draw=self._draw)
