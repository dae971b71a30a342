"""Compares models of float16 and bfloat16 once more, with every value rounded to its type, as hardware may round."""

from __future__ import annotations

import time
from dataclasses import replace

from onnx_migrate import process
from onnx_migrate.facts.narrow_floats import is_narrow, narrowest
from onnx_migrate.model.model import Segment
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.settings import Settings, interruption

__all__ = ["compare_rounded"]


def compare_rounded(verdict: Verdict, segment: Segment[Runnable], settings: Settings) -> Verdict:
    """Return the verdict on models that agree, after those of float16 and bfloat16 ran with every value rounded, too."""
    original, result = segment.original, segment.result
    # A model of float32 has no narrow values that hardware could round otherwise.
    if not is_narrow(original.model):
        return verdict
    # Few models are narrow, and this import takes longer than the comparison of a small model.
    from onnx_migrate.verify.precision.closeness import CLOSENESS, Closeness

    start = time.perf_counter()
    kind = narrowest(original.model)
    ending = settings.call(CLOSENESS, original, result, kind, settings.for_child, 1, True)
    verdict = replace(verdict, seconds=verdict.seconds + time.perf_counter() - start)
    closeness: Closeness = (
        ending.value if isinstance(ending, process.Returned) else Closeness(reason=interruption(ending))
    )
    overflows = "the original overflows where every value is rounded, as hardware may, at output"
    notes = [f"{overflows} {name!r}" for name in closeness.beyond]
    if closeness.reason:
        notes.append(f"the models were not compared with every value rounded: {closeness.reason}")
    elif not closeness.agrees:
        return replace(verdict, kind=Kind.DIFFERS, reason=closeness.problem, rounded=closeness.outputs)
    return replace(verdict, notes=(*verdict.notes, *notes), rounded=closeness.outputs)
