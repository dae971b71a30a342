"""Runs a result on the original's feeds, and pairs its inner values with the original's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import onnx

from onnx_migrate.isolate import mark
from onnx_migrate.verify.equivalence.bit_identity import run_recorded
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.equivalence.inner_values import InnerValues, expose_inner_values
from onnx_migrate.verify.evaluators import LEVELS, EvaluationError, Runnable, open_model, with_extra_outputs
from onnx_migrate.verify.run_count import run_each

__all__ = ["CandidateRun"]


class CandidateRun:
    """A result that is compared with the original; `evaluator` is the runtime that ran it last, "" before.

    Inner values are paired after the run in the first configuration, and compared in all. Those in `hidden` are in the
    first run for `compare_claim`.
    """

    def __init__(
        self, result: Runnable, model: onnx.ModelProto, findings: Findings, hidden: Collection[str] = ()
    ) -> None:
        self.evaluator = ""
        self._result = result
        self._findings = findings
        self._hidden = hidden
        self._reference = findings.reference
        self._pairs: list[tuple[str, str]] = []
        self._same_names = findings.reference.inner_names(model)

    def run(
        self, compare_claim: Callable[[Sequence[Values]], None] | None = None, *, load_first: bool = False
    ) -> None:
        """Run every feed in every configuration and compare; `compare_claim` gets the runs of the first one before.

        With `load_first` the result is only loaded in the first one. Raises EvaluationError.
        """
        for configuration in self._reference.runs:
            mark(f"result: running, {configuration}")
            first = configuration == self._reference.first
            if first and load_first:
                open_model(self._result, configuration)
                continue
            runs: Iterable[Values] = self._runs(configuration)
            if first and compare_claim is not None:
                runs = list(runs)
                compare_claim(runs)
            for index, values in enumerate(runs):
                self._findings.compare(configuration, index, values, self._pairs)
                if first:
                    self._findings.compare_recorded(index, values)

    def _runs(self, configuration: str) -> Iterator[Values]:
        inputs = [feed.inputs for feed in self._reference.feeds]
        if self._reference.nearest and configuration == LEVELS[0]:
            outputs = list(self._reference.nearest)
            inner = self._with_inner_values(outputs, inputs)
            self.evaluator = inner.evaluator.name
            self._pair(inner.nearest)
            yield from inner.runs
            return
        if configuration == LEVELS[0]:
            evaluator, runs = run_recorded(self._result, (), self._hidden, inputs)
            self.evaluator = evaluator.name
            yield from runs
            return
        exposed = [name for _, name in self._pairs]
        model = open_model(
            with_extra_outputs(self._result, exposed) if exposed else self._result, configuration
        )
        self.evaluator = model.name
        yield from run_each(model, inputs)

    def _with_inner_values(self, outputs: Sequence[str], inputs: Sequence[Mapping[str, Any]]) -> InnerValues:
        """Run with inner values upstream of `outputs`, and the hidden ones if the result runs with those."""
        if self._hidden:
            with suppress(EvaluationError):
                names = [*self._same_names, *self._hidden]
                return expose_inner_values(self._result, outputs, inputs, names)
        return expose_inner_values(self._result, outputs, inputs, self._same_names)

    def _pair(self, found: Mapping[str, tuple[str, ...]]) -> None:
        """Pair the original's inner values upstream of an output with the result's, if they are equally many."""
        unpaired = []
        for output, names in self._reference.nearest.items():
            theirs = found.get(output, ())
            if len(names) == len(theirs):
                self._pairs.extend(zip(names, theirs, strict=True))
            else:
                unpaired.append(output)
        self._pairs = list(dict.fromkeys(self._pairs))
        if unpaired:
            self._findings.add_unpaired(unpaired)
