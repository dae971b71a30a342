"""Runs a result on the original's feeds, and pairs its inner values with the original's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import onnx

from onnx_migrate.isolate import mark
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.equivalence.inner_values import expose_inner_values
from onnx_migrate.verify.evaluators import LEVELS, Runnable, open_model, with_extra_outputs

__all__ = ["CandidateRun"]


class CandidateRun:
    """A result that is compared with the original; `evaluator` is the runtime that ran it last, "" before.

    Inner values are paired after the run in the first configuration, and compared in all.
    """

    def __init__(self, result: Runnable, model: onnx.ModelProto, findings: Findings) -> None:
        self.evaluator = ""
        self._result = result
        self._findings = findings
        self._reference = findings.reference
        self._pairs: list[tuple[str, str]] = []
        self._same_names = findings.reference.inner_names(model)

    def run(self, compare_claim: Callable[[Sequence[Values]], None] | None = None) -> None:
        """Run every feed in every configuration and compare; `compare_claim` gets the runs of the first one before.

        Raises EvaluationError.
        """
        for configuration in self._reference.runs:
            mark(f"result: running, {configuration}")
            first = configuration == self._reference.first
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
            inner = expose_inner_values(self._result, outputs, inputs, self._same_names)
            self.evaluator = inner.evaluator.name
            self._pair(inner.nearest)
            yield from inner.runs
            return
        exposed = [name for _, name in self._pairs]
        model = open_model(
            with_extra_outputs(self._result, exposed) if exposed else self._result, configuration
        )
        self.evaluator = model.name
        for feed in inputs:
            yield model.run(feed)

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
