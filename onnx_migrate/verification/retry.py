"""Runs the passes of a migration again, some of them replaced, to find a request that works."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from onnx_migrate.engine.pass_infra import Pass
from onnx_migrate.engine.pipeline import Pipeline
from onnx_migrate.errors import MigrateError
from onnx_migrate.model.dims.plan import DimPlan
from onnx_migrate.model.model import Model
from onnx_migrate.process import seconds_left
from onnx_migrate.rewrite.change_log import ChangeLog
from onnx_migrate.verify.prover import Prover

__all__ = ["Retrying"]

_PATIENCE = 60.0
"""Seconds after which nothing further is tried."""


@dataclass
class Retrying:
    """Runs the passes again without optional ones, for `engine.pass_infra.Retry`."""

    pipeline: Pipeline
    prover: Prover
    original: Model
    failed: Model
    log: ChangeLog
    _start: float = field(default_factory=time.perf_counter)

    @property
    def passes(self) -> Iterator[Pass]:
        """The passes that run."""
        return (pipeline_pass for pipeline_pass in self.pipeline if not pipeline_pass.optional)

    @property
    def is_over(self) -> bool:
        """Whether a minute is over, or the time of the whole call."""
        return time.perf_counter() - self._start > _PATIENCE or not seconds_left()

    def loads(self, replaced: Mapping[str, Pass]) -> bool:
        """Return whether ONNX Runtime loads the result of the passes, those of these names replaced, if it loads the original."""
        try:
            candidate = self._pipeline(replaced).run(self.original, ChangeLog()).model
        except MigrateError:
            return False  # as an opset that the model cannot reach
        return self.prover.loads(candidate, self.original)

    def holds(self, replaced: Mapping[str, Pass]) -> bool:
        """Return whether the last segment that the passes make, those of these names replaced, is proved."""
        log = ChangeLog()
        try:
            last = self._pipeline(replaced).run(self.original, log).segments[-1]
            self.prover.prove(last, log.fact(DimPlan, "", ""))
        except MigrateError:
            return False
        return True

    def _pipeline(self, replaced: Mapping[str, Pass]) -> Pipeline:
        return Pipeline(
            tuple(replaced.get(pipeline_pass.name, pipeline_pass) for pipeline_pass in self.passes)
        )
