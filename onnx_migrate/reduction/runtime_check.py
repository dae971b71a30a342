"""A check that runs models in another runtime, in a process that stays for the next model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onnx_migrate.process import Crashed, Limits, TimedOut
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.checks import Runner, written
from onnx_migrate.reduction.failures import Failure
from onnx_migrate.verdicts import Comparison
from onnx_migrate.verify.compare.noise import Noise
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.evaluators.driver_facts import drivers
from onnx_migrate.verify.evaluators.foreign import ForeignProcess
from onnx_migrate.verify.kernel import Tolerance
from onnx_migrate.verify.other_runtimes.places import RuntimeRequest
from onnx_migrate.verify.other_runtimes.proof import in_form_of, tolerance_of
from onnx_migrate.verify.tolerances import tolerance_for

__all__ = ["RuntimeCheck"]


@dataclass(frozen=True)
class RuntimeCheck:
    """A model fails if the runtime does not load or run it, crashes, or computes wrong values.

    The right values are those of ONNX Runtime without optimisation.
    """

    request: RuntimeRequest
    limits: Limits
    tolerance: Tolerance = field(default_factory=Tolerance)
    needs_values = True

    def command(self, model: str, inputs: str) -> str:
        """Return the command for a model: verify runs it in the runtime, and prints how it fails."""
        name = shlex.quote(model)
        data = f" --input-data {shlex.quote(inputs)}" if inputs else ""
        return f"onnx-migrate verify {name} {name} --run-in {shlex.quote(self.request.text)}{data}"

    def runner(self) -> Runner:
        """Return a runner for one thread."""
        return _RuntimeRunner(self)


class _RuntimeRunner:
    """Runs models in one process of the runtime, and starts another one if a model ends it."""

    def __init__(self, check: RuntimeCheck) -> None:
        self._check = check
        self._folder = TemporaryFolder()
        self._process: ForeignProcess | None = None

    def close(self) -> None:
        if self._process is not None:
            self._process.__exit__()
            self._process = None
        self._folder.remove()

    def failure(self, candidate: Candidate) -> Failure | None:
        path = written(candidate, self._folder.path)
        names = [output.name for output in candidate.proto.graph.output]
        feed = candidate.complete_feed()
        process = self._started()
        try:
            process.load(path, feed, names)
            outputs = process.run(feed)
        except (EvaluationError, MemoryError) as error:
            return self._ended(process, error)
        return self._wrong(candidate.expected, outputs)

    def _started(self) -> ForeignProcess:
        if self._process is None:
            self._process = ForeignProcess(self._check.request.place, self._check.limits)
        return self._process

    def _ended(self, process: ForeignProcess, error: EvaluationError | MemoryError) -> Failure:
        """Return the failure that an exception of the process stands for."""
        text, ending = str(error), process.ending
        if ending is None:
            return Failure(error.failed_to if isinstance(error, EvaluationError) else "run", "", text)
        process.__exit__()
        self._process = None
        if isinstance(ending, TimedOut):
            return Failure("time-out", "", text)
        return Failure("crash", ending.signal if isinstance(ending, Crashed) else "out of memory", text)

    def _wrong(self, expected: Mapping[str, Any] | None, found: Mapping[str, Any]) -> Failure | None:
        """Return how the values of a run are wrong; None if they are right, or there is nothing to compare them with."""
        if expected is None:
            return None
        name = self._check.request.place.name
        arrays = {
            key: np.asarray(value) if isinstance(value, np.ndarray) else value
            for key, value in expected.items()
        }
        values, _ = in_form_of(found, arrays, loses_axes=drivers()[name].loses_axes)
        tolerance, noise = tolerance_of(name, self._check.tolerance), Noise([arrays])
        entries = [
            entry
            for key, value in arrays.items()
            for entry in noise.compare(key, value, values.get(key), 0, tolerance_for(tolerance, key))
        ]
        wrong = [entry for entry in entries if not entry.agrees]
        return _failure_of(max(wrong, key=_error)) if wrong else None


def _failure_of(worst: Comparison) -> Failure:
    kind = "numbers"
    if worst.shape_before != worst.shape_after:
        kind = "shape"
    elif worst.dtype_before != worst.dtype_after:
        kind = "type"
    elif worst.histogram is not None and worst.histogram.not_finite:
        kind = "NaN or infinity"
    return Failure("wrong", kind, f"{worst.output!r} is wrong: {worst.problem}", _error(worst))


def _error(entry: Comparison) -> float:
    """Return the error as a share of the largest value; 1 for values that cannot be compared."""
    error = entry.largest_relative or entry.largest_absolute
    return float(error) if error and np.isfinite(error) else 1.0
