"""Runs original and result in other runtimes, and compares both with the original in ONNX Runtime.

`python -m tests.verify.other_runtimes.measure` measures how far each runtime's own rounding takes it from ONNX Runtime. It runs
the fixtures and the node tests of onnx's releases. It takes the largest difference among the models that a runtime computes like
ONNX Runtime. The unit is the eps of float32 times the output's largest value. Only the part beyond ten times the noise of ONNX
Runtime itself counts (docs/proving.md has the figures).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from onnx_migrate import files, process
from onnx_migrate.model.model import Model
from onnx_migrate.process import Limits
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.verdicts import Comparison
from onnx_migrate.verdicts.runtime_proof import RuntimeProof, Side, outcome_of
from onnx_migrate.verify.compare.model_precision import coarsest_eps, is_quantized
from onnx_migrate.verify.compare.noise import Noise
from onnx_migrate.verify.equivalence.original_run import run_original
from onnx_migrate.verify.evaluators import EvaluationError, Runnable, without_static_shapes
from onnx_migrate.verify.evaluators.driver_facts import drivers
from onnx_migrate.verify.evaluators.foreign import Foreign, NotInstalled
from onnx_migrate.verify.kernel import Tolerance
from onnx_migrate.verify.model_traits import is_random, with_fixed_numbers
from onnx_migrate.verify.other_runtimes.places import RuntimeRequest
from onnx_migrate.verify.settings import Settings, interruption
from onnx_migrate.verify.tolerances import tolerance_for

__all__ = [
    "EXPECTED_VALUES",
    "Expected",
    "expected_values",
    "in_form_of",
    "prove_in",
    "prove_models",
    "tolerance_of",
]


_EPS = 2.0**-23

EXPECTED_VALUES = "onnx_migrate.verify.other_runtimes.proof:expected_values"
"""The function that the child process runs."""

_FIXED = "run with fixed numbers in place of random ones"


def tolerance_of(name: str, given: Tolerance) -> Tolerance:
    """Return the tolerance for a runtime; `given` has the user's limits, and the eps of the model's coarsest type.

    No runtime but ONNX Runtime has doubles throughout, so for others the eps is at least that of float32.
    """
    facts = drivers()[name]
    return replace(given, floor=facts.floor, eps=given.eps if facts.doubles else max(given.eps, _EPS))


def in_form_of(
    found: Mapping[str, Any], expected: Mapping[str, Any], *, loses_axes: bool
) -> tuple[dict[str, Any], list[str]]:
    """Return a run's values in the expected types and shapes, if that changes no number, and notes.

    A runtime without 64-bit integers, doubles or bools returns 32-bit ones or 0 and 1. With `loses_axes` it may also drop or add
    axes of length 1.
    """
    values: dict[str, Any] = {}
    notes = []
    for name, value in found.items():
        wanted = expected.get(name)
        if not isinstance(value, np.ndarray) or not isinstance(wanted, np.ndarray):
            values[name] = value
            continue
        # Axes of length 1 hold no numbers.
        if value.shape != wanted.shape and loses_axes and _squeezed(value) == _squeezed(wanted):
            notes.append(f"{name!r} has the shape {list(value.shape)} in place of {list(wanted.shape)}")
            value = value.reshape(wanted.shape)
        if value.dtype != wanted.dtype:
            # The conversion must not change a number.
            changed = _as_type(value, wanted.dtype)
            if changed is not None:
                notes.append(f"{name!r} is of {value.dtype} in place of {wanted.dtype}")
                value = changed
        values[name] = value
    return values, notes


def _squeezed(value: Any) -> list[int]:
    return [length for length in value.shape if length != 1]


def _as_type(value: Any, wanted: Any) -> Any:
    """Return the values in another type, None if the types hold different kinds of numbers."""
    if value.dtype.kind == "f" and wanted.kind in "iub":
        whole = np.all(np.isfinite(value)) and np.array_equal(value, np.round(value))
        return value.astype(wanted) if whole else None
    kinds = {value.dtype.kind, wanted.kind}
    if kinds <= set("iub") or kinds == {"f"}:
        return value.astype(wanted)
    return None


@dataclass(frozen=True)
class Expected:
    """The original's outputs in ONNX Runtime, without optimisation, on each feed that it runs on.

    `noise` is how far rounding moves them, and `tolerance` the allowed difference for the types of the model.
    """

    feeds: tuple[Mapping[str, Any], ...]
    outputs: tuple[Mapping[str, Any], ...]
    noise: Noise
    tolerance: Tolerance


def prove_models(
    asked: Sequence[RuntimeRequest],
    original: Model,
    result: Model,
    settings: Settings,
    intended: Model | None = None,
) -> tuple[RuntimeProof, ...]:
    """Run original and result in each runtime, each as one file with its weights (`prove_in`).

    Fixed operators replace random ones in all models, because other runtimes draw other numbers. Raises UsageError for inputs
    that do not fit the original.
    """
    models = {"original": original, "result": result}
    if intended is not None and intended is not original:
        models["intended"] = intended
    # Each runtime draws other numbers.
    random = any(is_random(model.proto) for model in models.values())
    with TemporaryFolder() as folder:
        written = {}
        for name, model in models.items():
            path = Path(folder, name, "model.onnx")
            path.parent.mkdir()
            files.save(_fixed(model) if random else model, path)
            written[name] = Runnable(path)
        proofs = prove_in(asked, written["original"], written["result"], settings, written.get("intended"))
    return tuple(replace(proof, notes=(*proof.notes, _FIXED)) for proof in proofs) if random else proofs


def _fixed(model: Model) -> Model:
    structure = model.proto.SerializeToString(deterministic=True)
    fixed = with_fixed_numbers(Runnable(structure=structure, weights=model.weights))
    return replace(model, proto=fixed.proto(), weights=model.weights.copy())


def prove_in(
    asked: Sequence[RuntimeRequest],
    original: Runnable,
    result: Runnable,
    settings: Settings,
    intended: Runnable | None = None,
) -> tuple[RuntimeProof, ...]:
    """Run both models in each runtime and return the outcomes.

    The models are files, each with its weights. `intended` is the model with the intended numbers if a pass changed them on
    purpose; else it is the original. Each runtime has processes of its own, with the limits for each load and each run. Raises
    UsageError for inputs that do not fit the original.
    """
    say = settings.listen or (lambda _: None)
    say("inputs")
    # The expected outputs are computed once for all runtimes.
    ending = settings.alone.call(EXPECTED_VALUES, intended or original, result, settings.for_child)
    if isinstance(ending, process.Raised) and ending.error is not None:
        raise ending.error
    expected = ending.value if isinstance(ending, process.Returned) else interruption(ending)
    proofs = []
    for request in asked:
        say(request.runtime)
        start = time.perf_counter()
        if isinstance(expected, Expected):
            proof = _proof_in_time(request, expected, settings, original, result)
        else:
            proof = RuntimeProof(request.text, request.runtime, "unknown", Side("run", str(expected)))
        proofs.append(replace(proof, seconds=time.perf_counter() - start))
    return tuple(proofs)


def _proof_in_time(
    item: RuntimeRequest, expected: Expected, settings: Settings, original: Runnable, result: Runnable
) -> RuntimeProof:
    """Return the outcome of both models in a runtime; it is unknown if memory or the time of the whole call ran out."""
    try:
        if process.seconds_left():
            proof = _Runtime(item, expected, settings.limits).proof(original, result)
            if proof.passed or process.seconds_left():
                return proof
        lack: process.Ending = process.TimedOut(settings.limits.seconds or 0.0, stage=item.runtime)
    except MemoryError as error:
        lack = process.OutOfMemory(settings.limits.memory, stage=item.runtime, cause=str(error))
    return RuntimeProof(item.text, item.runtime, "unknown", Side("run", interruption(lack)))


def expected_values(original: Runnable, result: Runnable, settings: Settings) -> Expected | str:
    """Run the original without optimisation; return its outputs, or the reason if it does not run.

    Raises UsageError for inputs that do not fit it.
    """
    try:
        try:
            run = run_original(original, result, settings)
        except EvaluationError as error:
            if not error.loading or error.limit:
                raise
            run = run_original(without_static_shapes(original), result, settings)
    except EvaluationError as error:
        return f"the original does not {error.failed_to} in ONNX Runtime, so there is nothing to compare with: {error}"
    names = [output.name for output in original.model.graph.output]
    outputs = tuple({name: values[name] for name in names} for values in run.runs[run.first])
    # The tolerance depends on the types and on quantisation.
    eps, quantum = coarsest_eps(original.model), is_quantized(original.model)
    tolerance = replace(settings.tolerance, quantum=quantum, eps=eps)
    return Expected(tuple(run.inputs(run.first)), outputs, run.noise, tolerance)


class _Runtime:
    """Runs models in one runtime, on every feed, and compares their outputs with the expected ones."""

    def __init__(self, asked: RuntimeRequest, expected: Expected, limits: Limits) -> None:
        self._asked, self._expected, self._limits = asked, expected, limits
        self._tolerance = tolerance_of(asked.place.name, expected.tolerance)

    def proof(self, original: Runnable, result: Runnable) -> RuntimeProof:
        """Run both models and return the outcome."""
        ours, runs, notes = self._side(result)
        theirs, original_runs, _ = self._side(original)
        alike = bool(runs) and bool(original_runs)
        if alike and not ours.right and not theirs.right:
            alike = all(entry.agrees for entry in self._compared(original_runs, runs))
        outcome = outcome_of(ours, theirs, alike=alike)
        return RuntimeProof(self._asked.text, self._asked.runtime, outcome, ours, theirs, tuple(notes))

    def _side(self, model: Runnable) -> tuple[Side, list[dict[str, Any]], list[str]]:
        """Return how a model compares, its outputs, and the forms of the runtime's own that they had."""
        runs: list[dict[str, Any]] = []
        notes: dict[str, None] = {}
        runtime_place, expected = self._asked.place, self._expected
        try:
            with Foreign(model, runtime_place, self._limits) as evaluator:
                for feed, wanted in zip(expected.feeds, expected.outputs, strict=True):
                    returned = evaluator.run(feed)
                    # Some runtimes return shapes without axes of 1.
                    values, forms = in_form_of(
                        returned, wanted, loses_axes=drivers()[runtime_place.name].loses_axes
                    )
                    runs.append(values)
                    notes.update(dict.fromkeys(forms))
        except EvaluationError as error:
            return Side(error.failed_to, str(error)), [], []
        except NotInstalled as error:  # it was there a moment ago
            return Side("load", str(error)), [], []
        worst: dict[str, Comparison] = {}
        for entry in self._compared(expected.outputs, runs):
            both = Side(comparisons=(worst.get(entry.output, entry), entry))
            # Of several feeds, the worst comparison is reported.
            worst[entry.output] = both.worst or entry
        return Side(comparisons=tuple(worst.values())), runs, list(notes)

    def _compared(
        self, original: Sequence[Mapping[str, Any]], result: Sequence[Mapping[str, Any]]
    ) -> Iterator[Comparison]:
        for index, (expected_values, other) in enumerate(zip(original, result, strict=True)):
            for name, value in expected_values.items():
                tolerance = tolerance_for(self._tolerance, name)
                yield from self._expected.noise.compare(name, value, other.get(name), index, tolerance)
