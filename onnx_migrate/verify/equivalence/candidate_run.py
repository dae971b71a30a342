"""Runs a result on the original's feeds, and pairs its inner values with the original's."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
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

    Inner values are paired after the first run, and compared in all. Those in `hidden` are in the run for `compare_claim`.
    """

    def __init__(
        self, result: Runnable, model: onnx.ModelProto, findings: Findings, hidden: Collection[str] = ()
    ) -> None:
        self.evaluator = ""
        self._result = result
        self._findings = findings
        self._hidden = hidden
        self._reference = findings.reference
        self._pairs: list[tuple[str, str]] | None = None
        self._same_names = findings.reference.inner_names(model)

    def run(
        self, compare_claim: Callable[[Sequence[Values]], None] | None = None, *, load_first: bool = False
    ) -> None:
        """Run every feed in every configuration and compare; `compare_claim` gets the runs of the first one before.

        With `load_first` the result is only loaded in the first one. Values of the original in further ones are forgotten
        as soon as they are compared: they may take much memory. Raises EvaluationError.
        """
        for configuration in self._reference.runs:
            mark(f"result: running, {configuration}")
            first = configuration == self._reference.first
            if first and load_first:
                open_model(self._result, configuration)
                continue
            runs: Iterable[Values] = self._runs(configuration, first=first)
            if first and compare_claim is not None:
                runs = list(runs)
                paired = {name: runs[0][name] for _, name in self._pairs or () if name in runs[0]}
                compare_claim(runs)
                runs[0].update(paired)  # the claim forgets what was recorded for it
            index = 0  # without enumerate, which would keep the values of one run until after the next
            for values in runs:
                self._findings.compare(configuration, index, values, self._pairs or ())
                if first:
                    self._findings.compare_recorded(index, values)
                else:
                    self._reference.runs[configuration][index].clear()
                index += 1  # noqa: SIM113
                del values

    def _runs(self, configuration: str, *, first: bool) -> Iterator[Values]:
        inputs = self._reference.inputs(configuration)
        if self._reference.nearest and self._pairs is None and configuration in LEVELS:
            inner = self._with_inner_values(configuration, inputs, self._hidden if first else ())
            self.evaluator = inner.evaluator.name
            self._pairs = self._paired(inner.found.names)
            yield from inner.runs
            return
        if configuration == LEVELS[0]:
            evaluator, runs = run_recorded(self._result, (), self._hidden, inputs)
            self.evaluator = evaluator.name
            yield from runs
            return
        exposed = [name for _, name in self._pairs or ()]
        model = open_model(
            with_extra_outputs(self._result, exposed) if exposed else self._result, configuration
        )
        self.evaluator = model.name
        yield from run_each(model, inputs)

    def _with_inner_values(
        self, configuration: str, inputs: Sequence[Mapping[str, Any]], hidden: Collection[str]
    ) -> InnerValues:
        """Run with inner values upstream of outputs that do not vary, and the hidden ones if the result runs with those."""
        expose = partial(
            expose_inner_values,
            self._result,
            list(self._reference.nearest),
            inputs,
            configuration=configuration,
            depth=self._reference.depth,
        )
        if hidden:
            with suppress(EvaluationError, MemoryError):
                return expose([*self._same_names, *hidden])
        return expose(self._same_names)

    def _paired(self, found: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
        """Pair the original's inner values upstream of an output with the result's, if they are equally many."""
        unpaired = []
        pairs: list[tuple[str, str]] = []
        for output, names in self._reference.nearest.items():
            theirs = found.get(output, ())
            if len(names) == len(theirs):
                pairs.extend(zip(names, theirs, strict=True))
            else:
                unpaired.append(output)
        if unpaired:
            self._findings.add_unpaired(unpaired)
        return list(dict.fromkeys(pairs))
