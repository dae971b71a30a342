"""Runs original and result on the same inputs and determines whether they compute the same."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.analysis.running_cost import why_not_run
from onnx_migrate.errors import UsageError
from onnx_migrate.isolate.limits import memory_limit
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify.compare.tolerance import Tolerance, coarsest_eps, is_quantized
from onnx_migrate.verify.distance import distance
from onnx_migrate.verify.equivalence.bit_identity import (
    compare_inner_bits,
    compare_recorded_bits,
    recorded_with_outputs,
    run_exact,
)
from onnx_migrate.verify.equivalence.candidate_run import CandidateRun
from onnx_migrate.verify.equivalence.fallback_evaluator import verify_in_reference
from onnx_migrate.verify.equivalence.feed_search import Values
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.equivalence.own_rounding import compare_values, explain_bits
from onnx_migrate.verify.equivalence.reference_run import ReferenceRun, run_original
from onnx_migrate.verify.evaluators import (
    REFERENCE,
    EvaluationError,
    Runnable,
    with_defaults_as,
    without_static_shapes,
)
from onnx_migrate.verify.inputs.input_shapes import input_shapes
from onnx_migrate.verify.inputs.sizes import size_choices
from onnx_migrate.verify.inputs.user_inputs import Feeds
from onnx_migrate.verify.load_check import load_failure, load_within_reason, with_load_failure
from onnx_migrate.verify.model_traits import miscomputed_in_reference, random_outputs
from onnx_migrate.verify.random_part import with_fixed_numbers
from onnx_migrate.verify.run_count import expect_runs, start_count

__all__ = ["Task", "check"]

_PATIENCE = 3.0
"""Seconds that the comparison of inner values may take; or as long as the original took, if that was more."""


@dataclass(frozen=True)
class Task:
    """What a verification compares, and how; the fields are the arguments of `verify`."""

    original: Runnable
    result: Runnable
    exact: Runnable | None
    lifted: Runnable | None
    strict: bool
    by_value: bool
    feeds: Feeds | None
    tolerance: Tolerance
    seed: int
    first_choice: int = 0
    """The choice of sizes of generated inputs from which on they are tried: after a crash, the one that follows."""
    other: Runnable | None = None
    """A model whose distance from the original is measured, and decides nothing."""


def check(task: Task) -> Verdict:
    """Do the work of `verify` (verifier.py), in whatever process this is.

    Random operators are replaced by fixed ones in all models; then the result itself is still loaded.
    """
    original, result = task.original, task.result
    reason = why_not_run(original.proto(), memory_limit()) if task.feeds is None else ""
    if reason:
        verdict = Verdict(Kind.UNVERIFIED, f"the original was not run: {reason}", comparable=False)
        return with_load_failure(verdict, *load_within_reason(original, result))
    random = random_outputs(original.proto())
    if not random:
        return _check(task)
    verdict = _check(
        replace(
            task,
            original=with_fixed_numbers(original),
            result=with_fixed_numbers(result),
            exact=task.exact and with_fixed_numbers(task.exact),
            lifted=task.lifted and with_fixed_numbers(task.lifted),
            other=task.other and with_fixed_numbers(task.other),
        )
    )
    also = random_outputs(result.proto())
    lost = next((name for name in random if name not in also), "")
    if lost and verdict.kind is Kind.VERIFIED:
        reason = f"output {lost!r} depends on random numbers ({random[lost]}) in the original, and not in the result"
        verdict = replace(verdict, kind=Kind.UNVERIFIED, reason=reason)
    which, operators = ", ".join(map(repr, random)), ", ".join(sorted(set(random.values())))
    note = f"compared with fixed numbers in place of random ones ({operators}), on which these outputs depend: {which}"
    return with_load_failure(replace(verdict, notes=(*verdict.notes, note)), load_failure(original, result))


def _check(task: Task) -> Verdict:
    """Compare models without random operators, unless these cannot be replaced.

    Where one run takes long, less is run at first. If an output then differs by more than is allowed, all is.
    """
    verdict, dear = _run_and_compare(task, thorough=False)
    if dear and not all(comparison.agrees for comparison in verdict.comparisons):
        verdict, _ = _run_and_compare(task, thorough=True)
    return verdict


def _run_and_compare(task: Task, *, thorough: bool) -> tuple[Verdict, bool]:
    """Return the verdict, and whether less was run because one run takes long."""
    original, result, exact, lifted, feeds = task.original, task.result, task.exact, task.lifted, task.feeds
    fed = {name for feed in feeds.sets for name in feed.inputs} if feeds is not None else set()
    original = with_defaults_as(original, exact or lifted or result, fed)
    before, after = original.proto(), result.proto()
    kept = {output.name for output in after.graph.output}
    for output in before.graph.output:
        if output.name not in kept:
            reason = f"the result has no output {output.name!r}, which the original has"
            return Verdict(Kind.DIFFERS, reason), False
    start_count(_runs_for_each_input(task))
    compared = exact or (lifted if lifted == result else None)  # with the original, inner values included
    hidden = [] if compared is None else _recorded(before, after, compared.proto(), feeds, task.first_choice)
    start = time.perf_counter()
    try:
        original, reference, refusal = _run_loadable(task, original, before, after, hidden, thorough)
    except EvaluationError as error:
        reason = f"the original does not {error.failed_to}, so that there is nothing to compare with: {error}"
        if feeds is None and not error.loading:
            reason += "; give inputs that it runs on with --input-data"
        verdict = Verdict(Kind.UNVERIFIED, reason, node=error.node, comparable=False)
        return with_load_failure(verdict, load_failure(original, result)), False
    seconds = time.perf_counter() - start
    tolerance = replace(task.tolerance, eps=coarsest_eps(before), quantum=is_quantized(before))
    findings = Findings(reference, tolerance, random_outputs(before))
    if refusal:
        findings.notes.append(
            f"the original loads only without its declared shapes, and was run without them: {refusal}"
        )
    only_reference = reference.first == REFERENCE
    wrong = miscomputed_in_reference(after) if only_reference else ""
    if wrong:
        reason = f"the original runs in onnx.reference only, which computes the {wrong} of the result wrongly"
        return findings.unverified(reason), False
    if exact is not None and only_reference:
        findings.notes.append(
            "bit-identity is required, but was not checked: ONNX Runtime does not run the original"
        )
        exact = None
    claimed = None if only_reference else exact or (None if reference.dear and lifted != result else lifted)
    candidate = CandidateRun(result, after, findings, reference.hidden if claimed == result else ())
    claim = None
    if claimed is not None:
        claim = partial(_compare_claim, original, claimed, findings, task.strict, exact is not None)
    failure: EvaluationError | None = None
    if claim is not None and claimed is not None and claimed != result:
        try:
            claim(run_exact(claimed, findings))
        except EvaluationError as error:
            failure = error
    try:
        proved = reference.dear and exact is not None and exact != result and findings.exact is True
        load_first = proved and reference.all_at_both_levels
        expect_runs(
            sum(map(len, reference.runs.values()))
            - (len(reference.runs[reference.first]) if load_first else 0)
        )
        candidate.run(claim if claimed == result else None, load_first=load_first)
    except EvaluationError as error:
        load = load_failure(original, result) if error.loading and not only_reference else None
        if only_reference:
            reason = f"the original runs in onnx.reference only, and the result does not {error.failed_to} there: {error}"
            return findings.unverified(reason, candidate.evaluator), False
        if error.limit:
            if exact is not None:
                findings.notes.append(
                    "bit-identity is required, but was not checked: ONNX Runtime does not run the result"
                )
            verdict = verify_in_reference(original, result, after, findings, error)
        else:
            verdict = findings.reject(error, candidate.evaluator)
        return replace(verdict, load=load), False
    if exact is not None:
        if failure is not None and not failure.limit:
            return findings.reject_exact_model(failure), False
        if failure is not None:
            findings.notes.append(f"bit-identity is required, but was not checked: {failure}")
        elif findings.exact:
            same = compare_inner_bits(original, before, exact, findings, max(_PATIENCE, seconds))
            if not same and not task.strict:
                explain_bits(original, exact, findings, {0: reference.runs[reference.first][0]})
    elif failure is not None:
        findings.notes.append(f"the result before simplification does not {failure.failed_to}: {failure}")
    elif (
        task.by_value
        and not findings.own_rounding
        and not only_reference
        and tolerance.rtol is tolerance.atol is None
    ):
        compare_values(original, result, before, after, findings, max(_PATIENCE, seconds))
    verdict = findings.verdict(candidate.evaluator + _levels(reference))
    if task.other is not None:
        verdict = replace(verdict, distance=distance(reference, task.other))
    return verdict, reference.dear


def _runs_for_each_input(task: Task) -> int:
    """Return how many runs of results each input takes: the result's at both levels, another model's with the claim."""
    claimed = task.exact or task.lifted
    return 2 if claimed in (None, task.result) else 3


def _recorded(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    exact: onnx.ModelProto,
    feeds: Feeds | None,
    first_choice: int,
) -> list[str]:
    """Return the inner values to record while the outputs are computed, by the sizes that inputs likely have."""
    if feeds is not None:
        return recorded_with_outputs(before, exact, feeds.sets[0].inputs)
    try:
        shapes = input_shapes(before, after, size_choices(before)[first_choice])
        likely = {name: np.broadcast_to(np.float32(0), shape) for name, shape in shapes.items()}
    except (
        UsageError,
        ValueError,
    ):  # of an input that cannot be generated, or is too large: then nothing runs
        return []
    return recorded_with_outputs(before, exact, likely)


def _compare_claim(
    original: Runnable,
    claimed: Runnable,
    findings: Findings,
    strict: bool,
    exact: bool,
    runs: Sequence[Values],
) -> None:
    """Compare runs bit for bit and look for the cause of a difference, which counts against the model only if `exact`."""
    differing = findings.compare_bits(runs)
    same = compare_recorded_bits(original.proto(), claimed.proto(), runs[0], findings)
    if not strict and (differing or (exact and not same)):
        explain_bits(original, claimed, findings, {index: runs[index] for index in differing or [0]})
    findings.differs_inside = not same and not differing
    if not exact:
        findings.withdraw_claim()


def _run_loadable(
    task: Task,
    original: Runnable,
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    hidden: Sequence[str],
    thorough: bool,
) -> tuple[Runnable, ReferenceRun, str]:
    """Run the original, without static shapes if it does not load with them.

    Returns the model that ran, its run, and why the original did not load ("" if it did). Raises EvaluationError where
    neither runs, with the message of the original.
    """
    run = partial(
        run_original,
        before=before,
        after=after,
        feeds=task.feeds,
        seed=task.seed,
        first_choice=task.first_choice,
        thorough=thorough,
        once_more=task.exact is None or task.exact != task.result or _takes_integers(before),
    )
    if hidden:
        with suppress(EvaluationError, MemoryError):  # it may fail because of these outputs
            return original, run(original, hidden=hidden), ""
    try:
        return original, run(original), ""
    except EvaluationError as error:
        if not error.loading or error.limit:
            raise
        refusal = str(error)
    flexible = without_static_shapes(original)
    try:
        return flexible, run(flexible), refusal
    except EvaluationError as error:
        raise EvaluationError(refusal, error.node, loading=error.loading) from error


def _takes_integers(model: onnx.ModelProto) -> bool:
    """Whether an input chooses rows of tables, as ids of words do, of which one input reads a part."""
    kinds = (value.type.tensor_type.elem_type for value in fed_inputs(model.graph))
    return any(kind in (TensorProto.INT32, TensorProto.INT64) for kind in kinds)


def _levels(reference: ReferenceRun) -> str:
    """Return what to add to the name of ONNX Runtime: the device and the optimisation levels that were run."""
    levels = [configuration.partition(":")[2] for configuration in reference.runs]
    return f" CPU, optimisation {' and '.join(levels)}" if all(levels) else ""
