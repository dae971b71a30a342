"""A result that this release of ONNX Runtime does not support: onnx.reference runs it, or the verdict stays open."""

from __future__ import annotations

import time

import onnx

from onnx_migrate.facts.onnx_inference import without_fragile_ops
from onnx_migrate.process import mark
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify.compare.arrays import flatten
from onnx_migrate.verify.compare.comparison import compare
from onnx_migrate.verify.equivalence.findings import OTHER_RUNTIME, Findings
from onnx_migrate.verify.evaluators import (
    REFERENCE,
    EvaluationError,
    Runnable,
    open_model,
    with_extra_outputs,
)
from onnx_migrate.verify.model_traits import miscomputed_in_reference
from onnx_migrate.verify.run_count import begin_run

__all__ = ["verify_in_reference"]

_PATIENCE = 5.0
"""Seconds after which no further feed is run: onnx.reference is slow."""


def verify_in_reference(
    original: Runnable, result: Runnable, findings: Findings, why: EvaluationError
) -> Verdict:
    """Compare what onnx.reference computes for the result with what ONNX Runtime computed for the original.

    With both in onnx.reference, an error of its own would cancel out. The difference between the two evaluators is
    measured on the original, where onnx.reference runs it, and counts as noise. `why` is ONNX Runtime's error.
    """
    reason = f"this release of ONNX Runtime does not support the result: {why}"
    wrong = miscomputed_in_reference(result.model)
    if wrong:
        doubt = f"{reason}; onnx.reference cannot take its place, because it computes {wrong} wrongly"
        return findings.unverified(doubt, node=why.node)
    try:
        onnx.shape_inference.infer_shapes(without_fragile_ops(result.model), check_type=True)
    except onnx.shape_inference.InferenceError as error:
        return findings.reject(EvaluationError(" ".join(str(error).split()), why.node, loading=True), "")
    except Exception as error:  # of other kinds, which do not say that the model is wrong
        return findings.unverified(f"{reason}; onnx infers no shapes of it: {error}", node=why.node)
    mark("result: running in onnx.reference")
    start = time.perf_counter()
    trusted = True
    try:
        model = open_model(result, REFERENCE)
        inputs = findings.original.inputs(findings.original.first)
        for index, feed in enumerate(inputs):
            begin_run(f"input {index + 1} of {len(inputs)} in onnx.reference")
            values = model.run(feed)
            trusted = _observe_original(original, findings, index) and trusted
            findings.compare(findings.original.first, index, values)
            if time.perf_counter() - start > _PATIENCE:
                break
    except EvaluationError as error:
        return findings.unverified(
            f"{reason}; onnx.reference cannot take its place, because it does not {error.failed_to} it: {error}",
            node=why.node,
        )
    findings.notes.append(f"{reason}; onnx.reference ran it")
    if findings.original.nearest:
        findings.add_unpaired(list(findings.original.nearest))
    verdict = findings.verdict(model.name)
    if verdict.kind is Kind.DIFFERS and not trusted:
        doubt = f"{reason}; in onnx.reference it differs, but so does the original itself"
        return findings.unverified(doubt, model.name, why.node)
    return verdict


def _observe_original(original: Runnable, findings: Findings, index: int) -> bool:
    """Run the original in onnx.reference, add the difference to the noise, and return whether it is small.

    False where onnx.reference does not run the original or differs by more than backend tests allow; then nothing is
    added.
    """
    expected = findings.original.runs[findings.original.first][index]
    inputs = findings.original.feeds[index].inputs
    try:
        again = open_model(with_extra_outputs(original, expected), REFERENCE).run(inputs)
    except EvaluationError:
        return False
    for name, value in expected.items():
        here, there = flatten(name, value), dict(flatten(name, again[name]))
        if any(part not in there or compare(part, a, there[part], OTHER_RUNTIME).problem for part, a in here):
            return False
    findings.original.noise.observe(index, again)
    return True
