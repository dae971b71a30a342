"""Runs the other models of a segment on the original's feeds: the result, the one before simplification, another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from onnx_migrate.process import mark
from onnx_migrate.verdicts import Distance
from onnx_migrate.verify.compare.bits import bit_difference
from onnx_migrate.verify.compare.metrics import Metrics
from onnx_migrate.verify.compare.values import paired, scale_of
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.equivalence.original_run import OriginalRun
from onnx_migrate.verify.equivalence.stages import DISTANCE_STAGE
from onnx_migrate.verify.equivalence.upstream_values import InnerValues, expose_inner_values
from onnx_migrate.verify.evaluators import (
    LEVELS,
    UNOPTIMIZED,
    EvaluationError,
    Evaluator,
    Runnable,
    open_model,
)
from onnx_migrate.verify.inputs.generate import WIDE
from onnx_migrate.verify.kernel.difference import Difference
from onnx_migrate.verify.run_count import run_each

__all__ = ["BitDifferences", "ResultRun", "bit_differences", "distance", "run_unsimplified"]


def run_unsimplified(unsimplified: Runnable, original: OriginalRun) -> list[Values]:
    """Run the model before simplification on every feed, without optimisation. Raises EvaluationError.

    The first run has the inner values that the original's recorded.
    """
    mark("result before its inexact changes: running")
    names = original.inner_names(unsimplified.model)
    return list(_run_recorded(unsimplified, names, original.recorded, original.inputs(original.first))[1])


@dataclass(frozen=True)
class BitDifferences:
    """The outputs of one feed that are not bit for bit the original's, and how the first of them differs."""

    outputs: frozenset[str]
    first: str


def bit_differences(
    original: OriginalRun, runs: Sequence[Values], left_out: Collection[str] = ()
) -> dict[int, BitDifferences]:
    """Compare bit for bit, without optimisation, every value of the runs that the original has by that name.

    0 and -0 count as the same: no node reads an output. Returns the differences by the position of the feed.
    """
    differences = {}
    for index, (expected, values) in enumerate(zip(original.runs[original.first], runs, strict=False)):
        compared = (name for name in expected if name in values and name not in left_out)
        # Elements that the original itself leaves undefined are no difference.
        defined = {
            name: original.noise.defined(index, name, expected[name], values[name]) for name in compared
        }
        texts = {name: bit_difference(name, *pair, zeros=False) for name, pair in defined.items()}
        texts = {name: text for name, text in texts.items() if text}
        if texts:
            differences[index] = BitDifferences(frozenset(texts), next(iter(texts.values())))
    return differences


def _run_recorded(
    model: Runnable, names: Sequence[str], recorded: Collection[str], feeds: Sequence[Mapping[str, Any]]
) -> tuple[Evaluator, Iterator[Values]]:
    """Load a model without optimisation and run it, with inner values `names` in every run and `recorded` in the first.

    If the model fails with `recorded`, it runs without them. Raises EvaluationError, also while it is iterated.
    """
    first: list[Values] = []
    try:
        evaluator = open_model(model, UNOPTIMIZED, [*names, *recorded])
        # Recorded values take much memory, so only the first run has them.
        first = list(run_each(evaluator, feeds, range(len(feeds[:1]))))
    except (EvaluationError, MemoryError):
        # Without further outputs, the fault is the model's own.
        if not recorded:
            raise
        recorded = ()
        evaluator = open_model(model, UNOPTIMIZED, names)

    def runs() -> Iterator[Values]:
        yield from first
        for values in run_each(evaluator, feeds, range(len(first), len(feeds))):
            yield {name: value for name, value in values.items() if name not in recorded}

    return evaluator, runs()


class ResultRun:
    """A result that is compared with the original; `evaluator` is the runtime that ran it last, "" before.

    Inner values are paired after the first run, and compared in all. Those `recorded` are in the runs for `compare_bits`.
    """

    def __init__(self, result: Runnable, findings: Findings, recorded: Collection[str] = ()) -> None:
        self.evaluator = ""
        self._result = result
        self._findings = findings
        self._recorded = recorded
        self._original = findings.original
        self._pairs: list[tuple[str, str]] | None = None
        self._same_names = findings.original.inner_names(result.model)

    def run(
        self, compare_bits: Callable[[Sequence[Values]], None] | None = None, *, load_first: bool = False
    ) -> None:
        """Run every feed in every configuration and compare; `compare_bits` gets the runs of the first one before.

        With `load_first` the result is only loaded in the first one. Values of the original in further ones are forgotten
        as soon as they are compared: they may take much memory. Raises EvaluationError.
        """
        for configuration in self._original.runs:
            mark(f"result: running, {configuration}")
            first = configuration == self._original.first
            if first and load_first:
                open_model(self._result, configuration)
                continue
            runs: Iterable[Values] = self._runs(configuration, first=first)
            if first and compare_bits is not None:
                runs = list(runs)
                paired = {name: runs[0][name] for _, name in self._pairs or () if name in runs[0]}
                compare_bits(runs)
                runs[0].update(paired)  # `compare_bits` dropped the recorded values
            index = 0  # without enumerate, which would keep the values of one run until after the next
            for values in runs:
                self._findings.compare(configuration, index, values, self._pairs or ())
                if first:
                    self._findings.compare_expected(index, values)
                else:
                    self._original.runs[configuration][index].clear()
                index += 1  # noqa: SIM113
                del values

    def _runs(self, configuration: str, *, first: bool) -> Iterator[Values]:
        inputs = self._original.inputs(configuration)
        if self._original.upstream.names and self._pairs is None and configuration in LEVELS:
            inner = self._with_inner_values(configuration, inputs, self._recorded if first else ())
            self.evaluator = inner.evaluator.name
            self._findings.notes.extend(inner.evaluator.notes)
            self._pairs = self._paired(inner.found.names)
            yield from inner.runs
            return
        if configuration == LEVELS[0]:
            evaluator, runs = _run_recorded(self._result, (), self._recorded, inputs)
            self.evaluator = evaluator.name
            self._findings.notes.extend(evaluator.notes)
            yield from runs
            return
        model = open_model(self._result, configuration, [name for _, name in self._pairs or ()])
        self.evaluator = model.name
        yield from run_each(model, inputs)

    def _with_inner_values(
        self, configuration: str, inputs: Sequence[Mapping[str, Any]], recorded: Collection[str]
    ) -> InnerValues:
        """Run with inner values upstream of outputs that do not vary, and the recorded ones if the result runs with those."""
        upstream = self._original.upstream
        expose = partial(
            expose_inner_values,
            self._result,
            list(upstream.names),
            inputs,
            configuration=configuration,
            like=upstream,
        )
        if recorded:
            with suppress(EvaluationError, MemoryError):
                return expose([*self._same_names, *recorded])
        return expose(self._same_names)

    def _paired(self, found: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
        """Pair the original's inner values upstream of an output with the result's, if they are equally many."""
        unpaired = []
        pairs: list[tuple[str, str]] = []
        for output, names in self._original.upstream.names.items():
            theirs = found.get(output, ())
            if len(names) == len(theirs):
                pairs.extend(zip(names, theirs, strict=True))
            else:
                unpaired.append(output)
        if unpaired:
            self._findings.add_unpaired(unpaired)
        return list(dict.fromkeys(pairs))


def distance(original: OriginalRun, other: Runnable, *, with_metrics: bool = False) -> Distance | None:
    """Run `other` on the feeds of the original's first run, and return the largest difference; None if it does not load or run.

    It skips corner feeds: at a threshold or beside huge numbers, another type computes something else by design. On numbers ten
    times as large as usual only NaN, infinities and shapes count. Only outputs are compared. An output with NaN or infinities at
    other positions comes before every difference of finite elements. With `with_metrics` the result has metrics.
    """
    mark(DISTANCE_STAGE)
    distances: list[Distance] = []
    metrics = Metrics()
    try:
        model = open_model(other, original.first)
        for feed, expected in zip(original.feeds, original.runs[original.first], strict=False):
            # At corners, another type may compute something else by design.
            if feed.corner:
                continue
            outputs = model.run(feed.inputs)
            for name in outputs.keys() & expected.keys() - original.upstream.inner:
                if with_metrics:
                    metrics.add(name, expected[name], outputs[name])
                parts = paired(name, expected[name], outputs[name])
                if parts is None:
                    distances.append(Distance(name, float("inf"), 0.0, reshaped=True))
                for part, expected_part, another in parts or ():
                    if expected_part is None or another is None:
                        continue
                    measured, reshaped = (
                        Difference.between(expected_part, another),
                        expected_part.shape != another.shape,
                    )
                    # Large numbers overflow in a narrow type by design.
                    if feed.name == WIDE and not reshaped and not measured.problem:
                        continue
                    # Different shapes have no common scale.
                    scales = 0.0 if reshaped else scale_of(another), measured.scale
                    counted = not reshaped and np.isinf(measured.largest)
                    differing = float(np.mean(expected_part != another)) if counted else 0.0
                    distances.append(
                        Distance(
                            part,
                            measured.largest,
                            scales[0],
                            reshaped,
                            scales[1],
                            measured.problem,
                            differing,
                        )
                    )
    except EvaluationError:
        return None
    farthest = max(
        distances,
        key=lambda item: (bool(item.problem), item.largest / (item.scale or 1.0), item.output),
        default=None,
    )
    return farthest and replace(farthest, metrics=metrics.results)
