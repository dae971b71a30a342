"""A result that is newer than the runtime: onnx.reference computes it, or nothing is known."""

from __future__ import annotations

import time

import onnx

from onnx_migrate.analysis.onnx_inference import sheltered
from onnx_migrate.isolate import mark
from onnx_migrate.verify.compare.arrays import compare, flat
from onnx_migrate.verify.equivalence.findings import RECORDED, Judge
from onnx_migrate.verify.evaluators import EvaluationError, Runnable, open_model
from onnx_migrate.verify.model_traits import exposing, resizes
from onnx_migrate.verify.verdict import Kind, Verdict

__all__ = ["verify_elsewhere"]

_PATIENCE = 5.0
"""Seconds after which no further feed is run: onnx.reference is slow."""


def verify_elsewhere(
    original: Runnable, result: Runnable, after: onnx.ModelProto, judge: Judge, why: EvaluationError
) -> Verdict:
    """Hold what onnx.reference gives for the result against what ONNX Runtime gave for the original.

    Both in onnx.reference would share its mistakes. How far the two evaluators differ by rounding is heard
    from the original, where onnx.reference runs it.
    """
    reason = f"ONNX Runtime does not run the result: {why}"
    if resizes(after):
        return judge.unsure(f"{reason}; and onnx.reference is wrong about Upsample and Resize", node=why.node)
    try:
        onnx.shape_inference.infer_shapes(sheltered(after), check_type=True)
    except onnx.shape_inference.InferenceError as error:
        return judge.fails(EvaluationError(" ".join(str(error).split()), why.node, loading=True), "")
    mark("result: running in onnx.reference")
    start = time.perf_counter()
    level = next(iter(judge.base.runs))
    trusted = True
    try:
        model = open_model(result, "reference")
        for index, feed in enumerate(judge.base.feeds):
            values = model.run(feed.inputs)
            trusted = _listen(original, judge, index) and trusted
            judge.hold(level, index, values)
            if time.perf_counter() - start > _PATIENCE:
                break
    except EvaluationError as error:
        return judge.unsure(f"{reason}; nor does onnx.reference: {error}", node=why.node)
    judge.notes.append(reason)
    if judge.base.nearest:
        judge.not_paired(list(judge.base.nearest))
    verdict = judge.verdict(model.name)
    if verdict.kind is Kind.DIFFERS and not trusted:
        doubt = f"{reason}; and onnx.reference is of another mind about the original already"
        return judge.unsure(doubt, model.name, why.node)
    return verdict


def _listen(original: Runnable, judge: Judge, index: int) -> bool:
    """Let the judge hear how far onnx.reference is off on the original, and say whether to trust it."""
    given = next(iter(judge.base.runs.values()))[index]
    try:
        again = open_model(exposing(original, given), "reference").run(judge.base.feeds[index].inputs)
    except EvaluationError:
        return False
    for name, value in given.items():
        here, there = flat(name, value), dict(flat(name, again[name]))
        if any(part not in there or compare(part, a, there[part], RECORDED).problem for part, a in here):
            return False
    judge.base.heard.listen(index, again)
    return True
