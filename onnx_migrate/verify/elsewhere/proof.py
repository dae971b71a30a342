"""Runs original and result in another runtime, and judges by what the original computes in ONNX Runtime."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnx_migrate import isolate
from onnx_migrate.isolate import Limits, Listener
from onnx_migrate.verdicts import Comparison
from onnx_migrate.verdicts.runtime_proof import RuntimeProof, Side, outcome_of
from onnx_migrate.verify.compare.noise import Noise
from onnx_migrate.verify.compare.tolerance import Tolerance
from onnx_migrate.verify.elsewhere.places import Asked
from onnx_migrate.verify.elsewhere.reference import REFERENCE_VALUES, Reference
from onnx_migrate.verify.elsewhere.rounding import in_form_of, tolerance_of
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from onnx_migrate.verify.evaluators.foreign import Foreign, NotInstalled
from onnx_migrate.verify.inputs.user_inputs import Feeds
from onnx_migrate.verify.interruption import interruption

__all__ = ["prove_in"]

_LOSES_AXES = {"opencv", "ncnn", "rknn"}
"""Runtimes that drop or add axes of length 1: OpenCV has no scalars and vectors, ncnn and RKNN have a batch of their own."""

_Runs = list[dict[str, Any]]


def prove_in(
    asked: Sequence[Asked],
    original: Runnable,
    result: Runnable,
    *,
    intended: Runnable | None = None,
    feeds: Feeds | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    isolated: bool = True,
    listen: Listener | None = None,
) -> tuple[RuntimeProof, ...]:
    """Run both models in each runtime and return what came of it.

    The models are files, each with its weights. `intended` is the model whose numbers the result shall have, where a
    pass changed them on purpose; else the original. Each runtime gets processes of its own, with `limits` for each load
    and each run. Raises UsageError for `feeds` that do not fit the original.
    """
    say = listen or (lambda _: None)
    say("inputs")
    ending = isolate.run(
        REFERENCE_VALUES, intended or original, result, feeds, seed, limits=limits, isolated=isolated
    )
    if isinstance(ending, isolate.Raised) and ending.error is not None:
        raise ending.error
    found = ending.value if isinstance(ending, isolate.Returned) else interruption(ending)
    proofs = []
    for item in asked:
        say(item.runtime)
        start = time.perf_counter()
        if isinstance(found, Reference):
            try:
                proof = _prove(item, original, result, found, (rtol, atol), limits)
            except MemoryError as error:
                reason = interruption(
                    isolate.OutOfMemory(
                        limits.memory if limits else None, stage=item.runtime, cause=str(error)
                    )
                )
                proof = RuntimeProof(item.text, item.runtime, "unknown", Side("run", reason))
        else:
            proof = RuntimeProof(item.text, item.runtime, "unknown", Side("run", str(found)))
        proofs.append(replace(proof, seconds=time.perf_counter() - start))
    return tuple(proofs)


def _prove(
    asked: Asked,
    original: Runnable,
    result: Runnable,
    reference: Reference,
    given: tuple[float | None, float | None],
    limits: Limits | None,
) -> RuntimeProof:
    name, (rtol, atol) = asked.place.name, given
    tolerance = tolerance_of(name, reference.eps, quantized=reference.quantized, rtol=rtol, atol=atol)
    after, result_runs, notes = _side(asked, result, reference, tolerance, limits)
    before, original_runs, _ = _side(asked, original, reference, tolerance, limits)
    alike = bool(result_runs) and bool(original_runs)
    if alike and not after.right and not before.right:
        pairs = zip(original_runs, result_runs, strict=True)
        alike = all(
            entry.agrees
            for index, (one, other) in enumerate(pairs)
            for entry in _compared(reference.noise, one, other, index, tolerance)
        )
    outcome = outcome_of(after, before, alike=alike)
    return RuntimeProof(asked.text, asked.runtime, outcome, after, before, tuple(notes))


def _side(
    asked: Asked, model: Runnable, reference: Reference, tolerance: Tolerance, limits: Limits | None
) -> tuple[Side, _Runs, list[str]]:
    """Run a model on every feed; return how it compares, what it computed, and in which forms of the runtime's own."""
    runs: _Runs = []
    notes: dict[str, None] = {}
    try:
        with Foreign(model, asked.place, limits) as evaluator:
            for feed, expected in zip(reference.feeds, reference.outputs, strict=True):
                values, forms = in_form_of(
                    evaluator.run(feed), expected, loses_axes=asked.place.name in _LOSES_AXES
                )
                runs.append(values)
                notes.update(dict.fromkeys(forms))
    except EvaluationError as error:
        return Side(error.failed_to, str(error)), [], []
    except NotInstalled as error:  # it was there a moment ago
        return Side("load", str(error)), [], []
    worst: dict[str, Comparison] = {}
    for index, (expected, values) in enumerate(zip(reference.outputs, runs, strict=True)):
        for entry in _compared(reference.noise, expected, values, index, tolerance):
            known = worst.get(entry.output)
            worst[entry.output] = entry if known is None else _worse(known, entry)
    return Side(comparisons=tuple(worst.values())), runs, list(notes)


def _compared(
    noise: Noise, before: Mapping[str, Any], after: Mapping[str, Any], index: int, tolerance: Tolerance
) -> list[Comparison]:
    return [
        entry
        for name, value in before.items()
        for entry in noise.compare(name, value, after.get(name), index, tolerance)
    ]


def _worse(one: Comparison, other: Comparison) -> Comparison:
    """Return the comparison of an output that differs more, by what is allowed."""
    return Side(comparisons=(one, other)).worst or one
