"""Runs original and result on the same inputs and determines whether they compute the same."""

from __future__ import annotations

import time
from dataclasses import replace

import onnx

from onnx_migrate import isolate
from onnx_migrate.isolate import Limits
from onnx_migrate.verify.compare.tolerance import Tolerance, coarsest_eps, is_quantized
from onnx_migrate.verify.equivalence.bit_identity import compare_inner_bits, compare_output_bits
from onnx_migrate.verify.equivalence.candidate_run import CandidateRun
from onnx_migrate.verify.equivalence.fallback_evaluator import verify_in_reference
from onnx_migrate.verify.equivalence.feed_search import SIZES_STAGE
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.equivalence.reference_run import ReferenceRun, run_original
from onnx_migrate.verify.evaluators import REFERENCE, EvaluationError, Runnable, without_static_shapes
from onnx_migrate.verify.inputs.sizes import choice_after_crash, size_choices
from onnx_migrate.verify.inputs.user_inputs import Feeds
from onnx_migrate.verify.interruption import interruption
from onnx_migrate.verify.load_check import check_loads, load_failure
from onnx_migrate.verify.model_traits import random_outputs
from onnx_migrate.verify.verdict import Kind, LoadFailure, Verdict

__all__ = ["CHECK", "check", "verify"]

CHECK = "onnx_migrate.verify.equivalence.verifier:check"
"""What runs in the child process."""

_CRASHES = 6
"""How often the original may crash, as on lengths that are too short for it, before the verification gives up."""

_PATIENCE = 3.0
"""Seconds that the comparison of inner values may take; or as long as the original took, if that was more."""


def verify(
    original: Runnable,
    result: Runnable,
    *,
    exact: Runnable | None = None,
    feeds: Feeds | None = None,
    tolerance: Tolerance | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    isolated: bool = True,
) -> Verdict:
    """Run both models on the same inputs, in one child process, and compare every output.

    `exact` is the model for which bit-identity is claimed; it may be the result itself. Without optimisation every
    output of it must be bit for bit that of the original, while the result may differ by rounding (tolerance.py).
    Without `feeds` the inputs are random (inputs/generate.py). Raises UsageError for `feeds` that do not fit the
    original; whatever the models do is in the verdict.
    """
    start = time.perf_counter()
    arguments = original, result, exact, feeds, tolerance or Tolerance(), seed
    ending = isolate.run(CHECK, *arguments, limits=limits, isolated=isolated)
    for _ in range(_CRASHES):
        if not isinstance(ending, isolate.Crashed) or not ending.stage.startswith(SIZES_STAGE):
            break
        choices = size_choices(original.proto())
        following = choice_after_crash(choices, int(ending.stage.removeprefix(SIZES_STAGE)))
        if following == len(choices):
            break
        ending = isolate.run(CHECK, *arguments, following, limits=limits, isolated=isolated)
    seconds = time.perf_counter() - start
    if isinstance(ending, isolate.Returned):
        verdict: Verdict = ending.value
        return replace(verdict, seconds=seconds)
    if isinstance(ending, isolate.Raised) and ending.error is not None:
        raise ending.error
    if isinstance(ending, isolate.Crashed) and ending.stage.startswith("result"):
        return Verdict(Kind.DIFFERS, interruption(ending), seconds=seconds)
    failure, doubt = check_loads(original, result, limits=limits, isolated=isolated)
    verdict = Verdict(Kind.UNVERIFIED, interruption(ending), seconds=seconds, comparable=False)
    return _with_load_failure(replace(verdict, notes=(doubt,) if doubt else ()), failure)


def check(
    original: Runnable,
    result: Runnable,
    exact: Runnable | None,
    feeds: Feeds | None,
    tolerance: Tolerance,
    seed: int,
    first_choice: int = 0,
) -> Verdict:
    """Do the work of `verify`, in whatever process this is; sizes are tried from the choice `first_choice` on."""
    before, after = original.proto(), result.proto()
    kept = {output.name for output in after.graph.output}
    for output in before.graph.output:
        if output.name not in kept:
            return Verdict(Kind.DIFFERS, f"the result has no output {output.name!r}, which the original has")
    start = time.perf_counter()
    try:
        original, reference, refusal = _run_loadable(original, before, after, feeds, seed, first_choice)
    except EvaluationError as error:
        reason = f"the original does not {error.failed_to}, so that there is nothing to compare with: {error}"
        if feeds is None and not error.loading:
            reason += "; give inputs that it runs on with --input-data"
        verdict = Verdict(Kind.UNVERIFIED, reason, node=error.node, comparable=False)
        return _with_load_failure(verdict, load_failure(original, result))
    seconds = time.perf_counter() - start
    tolerance = replace(tolerance, eps=coarsest_eps(before), quantum=is_quantized(before))
    findings = Findings(reference, tolerance, random_outputs(before))
    if refusal:
        findings.notes.append(
            f"the original loads only without its declared shapes, and was run without them: {refusal}"
        )
    only_reference = reference.first == REFERENCE
    if exact is not None and only_reference:
        findings.notes.append(
            "bit-identity is required, but was not checked: ONNX Runtime does not run the original"
        )
        exact = None
    candidate = CandidateRun(result, after, findings)
    try:
        candidate.run(exact=exact == result)
    except EvaluationError as error:
        failure = load_failure(original, result) if error.loading and not only_reference else None
        if only_reference:
            reason = f"the original runs in onnx.reference only, and the result does not {error.failed_to} there: {error}"
            return findings.unverified(reason, candidate.evaluator)
        if error.limit:
            if exact is not None:
                findings.notes.append(
                    "bit-identity is required, but was not checked: ONNX Runtime does not run the result"
                )
            verdict = verify_in_reference(original, result, after, findings, error)
        else:
            verdict = findings.reject(error, candidate.evaluator)
        return replace(verdict, load=failure)
    if exact is not None:
        try:
            if exact != result:
                compare_output_bits(exact, findings)
            if findings.exact:
                compare_inner_bits(original, before, exact, findings, max(_PATIENCE, seconds))
        except EvaluationError as error:
            if not error.limit:
                return findings.reject_exact_model(error)
            findings.notes.append(f"bit-identity is required, but was not checked: {error}")
    return findings.verdict(candidate.evaluator + _levels(reference))


def _with_load_failure(verdict: Verdict, failure: LoadFailure | None) -> Verdict:
    """Return the verdict on a result that could not be compared, and that does not load if there is a `failure`."""
    if failure is None or failure.limit:
        return replace(verdict, load=failure)
    reason = f"the result does not load: {failure.reason}"
    return replace(verdict, kind=Kind.DIFFERS, reason=reason, node=failure.node, load=failure)


def _run_loadable(
    original: Runnable,
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    feeds: Feeds | None,
    seed: int,
    first_choice: int,
) -> tuple[Runnable, ReferenceRun, str]:
    """Run the original, without static shapes if it does not load with them.

    Returns the model that ran, its run, and why the original did not load ("" if it did). Raises EvaluationError where
    neither runs, with the message of the original.
    """
    try:
        return original, run_original(original, before, after, feeds, seed, first_choice), ""
    except EvaluationError as error:
        if not error.loading or error.limit:
            raise
        refusal = str(error)
    flexible = without_static_shapes(original)
    try:
        return flexible, run_original(flexible, before, after, feeds, seed, first_choice), refusal
    except EvaluationError as error:
        raise EvaluationError(refusal, error.node, loading=error.loading) from error


def _levels(reference: ReferenceRun) -> str:
    """Return what to add to the name of ONNX Runtime: the device and the optimisation levels that were run."""
    levels = [configuration.partition(":")[2] for configuration in reference.runs]
    return f" CPU, optimisation {' and '.join(levels)}" if all(levels) else ""
