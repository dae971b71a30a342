"""Runs original and result side by side and says whether they compute the same."""

from __future__ import annotations

import time
from dataclasses import replace

from onnx_migrate import isolate
from onnx_migrate.isolate import Limits
from onnx_migrate.verify.compare.arrays import Tolerance
from onnx_migrate.verify.equivalence.bit_identity import hold_inner_exactness, hold_outer_exactness
from onnx_migrate.verify.equivalence.candidate_run import Candidate
from onnx_migrate.verify.equivalence.fallback_evaluator import verify_elsewhere
from onnx_migrate.verify.equivalence.findings import Judge
from onnx_migrate.verify.equivalence.reference_run import TRYING, measure
from onnx_migrate.verify.evaluators import LEVELS, EvaluationError, Runnable, without_static_shapes
from onnx_migrate.verify.inputs.generate import plan_behind, size_plans
from onnx_migrate.verify.inputs.user_inputs import Feeds
from onnx_migrate.verify.model_traits import coarsest_eps, quantized, random_outputs
from onnx_migrate.verify.verdict import Kind, Verdict

__all__ = ["check", "verify"]

_CRASHES = 6
"""How often the original may crash, as on lengths too short for it, before it is given up."""

_PATIENCE = 3.0
"""Seconds that comparing inner values may take, or as long as the original took, if more."""


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

    `exact` is the model after all changes that claim bit-identity; it may be the result itself. Without
    optimisation every output of it must be bit for bit that of the original, while the result may differ by
    rounding (see comparison.py). Without `feeds` the inputs are made up (see feeds.py). Never raises for what
    the models do; raises UsageError for `feeds` that do not fit the original.
    """
    start = time.perf_counter()
    function = "onnx_migrate.verify.equivalence.verifier:check"
    arguments = original, result, exact, feeds, tolerance or Tolerance(), seed
    ending = isolate.run(function, *arguments, limits=limits, isolated=isolated)
    for _ in range(_CRASHES):
        if not isinstance(ending, isolate.Crashed) or not ending.stage.startswith(TRYING):
            break
        plans = size_plans(original.proto())
        following = plan_behind(plans, int(ending.stage.removeprefix(TRYING)))
        if following == len(plans):
            break
        ending = isolate.run(function, *arguments, following, limits=limits, isolated=isolated)
    seconds = time.perf_counter() - start
    if isinstance(ending, isolate.Returned):
        verdict: Verdict = ending.value
        return replace(verdict, seconds=seconds)
    if isinstance(ending, isolate.Raised) and ending.error is not None:
        raise ending.error
    broken = isinstance(ending, isolate.Crashed) and ending.stage.startswith("result")
    kind = Kind.DIFFERS if broken else Kind.UNVERIFIED
    return Verdict(kind, f"{ending.stage or 'start'}: {ending}", seconds=seconds)


def check(
    original: Runnable,
    result: Runnable,
    exact: Runnable | None,
    feeds: Feeds | None,
    tolerance: Tolerance,
    seed: int,
    first_plan: int = 0,
) -> Verdict:
    """Do the work of `verify`, in whatever process this is."""
    before, after = original.proto(), result.proto()
    kept = {output.name for output in after.graph.output}
    for output in before.graph.output:
        if output.name not in kept:
            return Verdict(Kind.DIFFERS, f"the result has no output {output.name!r}")
    start = time.perf_counter()
    refused = ""
    try:
        try:
            base = measure(original, before, after, feeds, seed, first_plan)
        except EvaluationError as error:
            if not error.loading or error.limit:
                raise
            refused = str(error)
            original = without_static_shapes(original)
            base = measure(original, before, after, feeds, seed, first_plan)
    except EvaluationError as error:
        what = "load" if error.loading else "run"
        return Verdict(Kind.UNVERIFIED, f"the original does not {what}: {refused or error}", node=error.node)
    measured = time.perf_counter() - start
    tolerance = replace(tolerance, eps=coarsest_eps(before), quantum=quantized(before))
    judge = Judge(base, tolerance, random_outputs(before))
    if refused:
        judge.notes.append(f"the original loads only if the lengths of its inputs are left open: {refused}")
    reference = LEVELS[0] not in base.runs
    if exact is not None and reference:
        judge.notes.append("bit-identity was claimed and not tried: ONNX Runtime does not run the original")
        exact = None
    candidate = Candidate(result, after, judge)
    try:
        candidate.run(exact=exact == result)
    except EvaluationError as error:
        if reference:
            return judge.unsure(f"the result does not run in onnx.reference: {error}", candidate.evaluator)
        if error.limit:
            if exact is not None:
                judge.notes.append("bit-identity was claimed and not tried")
            return verify_elsewhere(original, result, after, judge, error)
        return judge.fails(error, candidate.evaluator)
    if exact is not None:
        try:
            if exact != result:
                hold_outer_exactness(exact, judge)
            if judge.exact:
                hold_inner_exactness(original, before, exact, judge, max(_PATIENCE, measured))
        except EvaluationError as error:
            if not error.limit:
                return judge.refutes(error)
            judge.notes.append(f"bit-identity was claimed and not tried: {error}")
    levels = "" if reference else f" CPU, optimisation {' and '.join(base.runs)}"
    return judge.verdict(candidate.evaluator + levels)
