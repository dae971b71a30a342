"""Whether the runtime's own rounding explains a difference in bits, shown by comparing value by value.

ONNX Runtime does not always round a node the same way: the kernel of another opset may add in another order, a constant
weight is packed for another algorithm, and casts between float16 and float32 are fused away, or not. Where it has no
kernel for an operator's new version, it computes the function body of the standard instead.
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from onnx_migrate.verify.equivalence.bit_identity import compare_inner_bits
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.equivalence.same_inputs import first_difference, keeps_all_names
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from onnx_migrate.verify.evaluators.kernels import computed_by_body

__all__ = ["compare_values", "explain_bits"]

_CLAIMED = 8.0
"""Units in the last place of a value's largest magnitude that a kernel may round differently, where bits are claimed."""
_UNCLAIMED = 64.0
"""The same where nothing is claimed: another tool may have written a node as another that rounds differently."""


def explain_bits(original: Runnable, exact: Runnable, findings: Findings, runs: Mapping[int, Values]) -> None:
    """Accept a difference in bits if, from the same inputs, no value of `exact` differs by more than rounding.

    `runs` holds its outputs on the feeds on which it differs, by the position of the feed. A value of an operator that has
    a kernel in one model and a function body in the other may round differently by more: the outputs decide on it.
    """
    feeds = [findings.reference.feeds[index].inputs for index in runs]
    unlike = computed_by_body(original.proto()) ^ computed_by_body(exact.proto())
    try:
        problem = first_difference(original, exact, feeds, _CLAIMED, claimed=True, unlike=unlike)
    except EvaluationError as error:
        problem = f"the models cannot be compared value by value: {error}"
    if problem:
        findings.note_cause(problem)
    elif unlike:
        findings.accept_other_kernels(sorted(unlike))
    else:
        findings.accept_rounding(runs)


def compare_values(
    original: Runnable,
    result: Runnable,
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    findings: Findings,
    seconds: float,
) -> None:
    """Compare value by value a result whose outputs agree but for rounding, where it keeps the names of all values.

    A fault that is smaller than what rounding adds up to in the outputs shows at its own node. Where outputs are bit for
    bit the same, so must inner values be that later nodes may hide; they are compared until `seconds` have passed.
    """
    if not keeps_all_names(before, after):
        return
    differing = sorted(findings.differing)
    if not differing:
        same = compare_inner_bits(original, before, result, findings, seconds)
        findings.withdraw_claim()
        if same and not findings.differs_inside:
            return
    feeds = [findings.reference.feeds[index].inputs for index in differing or [0]]
    try:
        problem = first_difference(original, result, feeds, _UNCLAIMED, claimed=False)
        findings.reject_values(problem)
    except (EvaluationError, MemoryError) as error:
        findings.notes.append(f"the models were not compared value by value, because then one fails: {error}")
