"""Runs a result for the judge, its inner values matched with the original's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

from onnx_migrate.isolate import mark
from onnx_migrate.verify.equivalence.findings import Judge
from onnx_migrate.verify.equivalence.inner_values import look_inside
from onnx_migrate.verify.equivalence.reference_run import Values
from onnx_migrate.verify.evaluators import LEVELS, Runnable, open_model
from onnx_migrate.verify.model_traits import exposing

__all__ = ["Candidate"]


class Candidate:
    """The result under test, and how its inner values are matched once the first level ran."""

    def __init__(self, result: Runnable, model: onnx.ModelProto, judge: Judge) -> None:
        self.evaluator = ""
        self._result = result
        self._judge = judge
        self._base = judge.base
        self._pairs: list[tuple[str, str]] = []
        self._shared = judge.base.inner_names(model)

    def run(self, *, exact: bool) -> None:
        """Hold it against the original; with `exact`, also bit for bit. Raises EvaluationError."""
        for level in self._base.runs:
            mark(f"result: running, optimisation {level}")
            first = level == next(iter(self._base.runs))
            kept = []
            for index, values in enumerate(self._runs(level)):
                self._judge.hold(level, index, values, self._pairs)
                if first:
                    self._judge.hold_recorded(index, values)
                    kept.append(values if exact else {})
            if exact and first:
                self._judge.hold_exact(kept)

    def _runs(self, level: str) -> Iterator[Values]:
        inputs = [feed.inputs for feed in self._base.feeds]
        if self._base.nearest and level == LEVELS[0]:
            inner = look_inside(self._result, list(self._base.nearest), inputs, self._shared)
            self.evaluator = inner.evaluator.name
            self._pair(inner.nearest)
            yield from inner.runs
            return
        result = exposing(self._result, [name for _, name in self._pairs]) if self._pairs else self._result
        model = open_model(result, level)
        self.evaluator = model.name
        for feed in inputs:
            yield model.run(feed)

    def _pair(self, found: Mapping[str, tuple[str, ...]]) -> None:
        unpaired = []
        for output, names in self._base.nearest.items():
            theirs = found.get(output, ())
            if len(names) == len(theirs):
                self._pairs.extend(zip(names, theirs, strict=True))
            else:
                unpaired.append(output)
        self._pairs = list(dict.fromkeys(self._pairs))
        if unpaired:
            self._judge.not_paired(unpaired)
