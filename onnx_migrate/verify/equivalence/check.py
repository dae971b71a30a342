"""Runs original and result on the same inputs, in the child process: do they compute the same (docs/verification.md)?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import onnx
from onnx import TensorProto

from onnx_migrate.errors import UsageError
from onnx_migrate.facts.narrow_floats import is_narrow
from onnx_migrate.facts.running_cost.obstacles import why_not_run
from onnx_migrate.model.graphs import fed_inputs
from onnx_migrate.process.limits import memory_limit
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify.equivalence.common_values import shapes_of, values_to_record
from onnx_migrate.verify.equivalence.feed_search import Extent
from onnx_migrate.verify.equivalence.input_advice import input_advice, library_advice
from onnx_migrate.verify.equivalence.original_run import OriginalRun, run_original
from onnx_migrate.verify.equivalence.segment_check import SegmentCheck
from onnx_migrate.verify.equivalence.stand_ins import stand_ins
from onnx_migrate.verify.equivalence.task import Task
from onnx_migrate.verify.equivalence.undefined_values import may_be_undefined
from onnx_migrate.verify.evaluators import EvaluationError, Runnable, with_defaults_as, without_static_shapes
from onnx_migrate.verify.evaluators.scopes import OWN_NAMES_NOTE, with_own_names
from onnx_migrate.verify.inputs.sizes import input_shapes, size_choices
from onnx_migrate.verify.load_check import with_load_failure
from onnx_migrate.verify.loading import load_failure, load_within_reason
from onnx_migrate.verify.model_traits import random_outputs, with_fixed_numbers
from onnx_migrate.verify.run_count import start_count

__all__ = ["check"]


def check(task: Task) -> Verdict:
    """Do the work of `task.verify`, in whatever process this is."""
    verdict = _verdict(task)
    return replace(verdict, stand_ins=tuple(stand_ins(task.segment.original.model, verdict)))


def _verdict(task: Task) -> Verdict:
    """Return the verdict on a task.

    Random operators are replaced by fixed ones in all models; then the result itself is still loaded.
    """
    original, result = task.segment.original, task.segment.result
    feeds = task.settings.feeds
    # Sizes of the user's inputs decide how long a run takes.
    sizes = None if feeds is None else shapes_of(feeds.sets[0].inputs)
    seconds, has_own_inputs = task.settings.limits.seconds, feeds is not None
    obstacle = why_not_run(original.model, memory_limit(), seconds, sizes, asked=has_own_inputs)
    if obstacle:
        reason = f"the original was not run: {obstacle}"
        verdict = Verdict(Kind.UNVERIFIED, reason, comparable=False, timed_out=obstacle.of_time)
        return with_load_failure(verdict, *load_within_reason(original, result))
    segment = named = task.segment.map(with_own_names)
    random = random_outputs(named.original.model)
    # Random numbers differ in each run, so fixed ones replace them.
    if random:
        segment = named.map(with_fixed_numbers)
    elif named == task.segment:
        return _check(task)
    verdict = _check(replace(task, segment=segment))
    if random:
        verdict = _about_random_outputs(verdict, random, random_outputs(named.result.model))
    if named != task.segment:
        verdict = replace(verdict, notes=(*verdict.notes, OWN_NAMES_NOTE))
    return with_load_failure(verdict, load_failure(original, result))


def _about_random_outputs(verdict: Verdict, random: Mapping[str, str], also: Mapping[str, str]) -> Verdict:
    """Return a verdict on fixed numbers, with a note on its gap: outputs of original and result that are random."""
    # A constant in place of random numbers is another model.
    lost = next((name for name in random if name not in also), "")
    if lost and verdict.kind is Kind.VERIFIED:
        reason = f"output {lost!r} depends on random numbers ({random[lost]}) in the original, and not in the result"
        verdict = replace(verdict, kind=Kind.UNVERIFIED, reason=reason)
    random_names, operators = ", ".join(map(repr, random)), ", ".join(sorted(set(random.values())))
    note = f"compared with fixed numbers in place of random ones ({operators}), on which these outputs depend: {random_names}"
    return replace(verdict, notes=(*verdict.notes, note))


def _check(task: Task) -> Verdict:
    """Compare models without random operators, unless these cannot be replaced.

    If one run takes long, the check runs less at first. If an output then differs by more than is allowed, the check runs
    everything. If the output still differs, the check ignores undefined elements.
    """
    verdict, less_was_run = _run_and_compare(task, thorough=False)
    if less_was_run and not all(comparison.agrees for comparison in verdict.comparisons):
        verdict, _ = _run_and_compare(task, thorough=True)
    if verdict.kind is Kind.DIFFERS and may_be_undefined(task.segment.original.model):
        defined, _ = _run_and_compare(replace(task, leaves_out=True), thorough=less_was_run)
        return defined if any(entry.left_out for entry in defined.comparisons) else verdict
    return verdict


def _run_and_compare(task: Task, *, thorough: bool) -> tuple[Verdict, bool]:
    """Return the verdict, and whether less was run than could be, because one run takes long."""
    segment, feeds = task.segment, task.settings.feeds
    fed = {name for feed in feeds.sets for name in feed.inputs} if feeds is not None else set()
    original = with_defaults_as(segment.original, segment.unsimplified or segment.result, fed)
    task = replace(task, segment=replace(segment, original=original))
    result_outputs = {output.name for output in segment.result.model.graph.output}
    for output in original.model.graph.output:
        if output.name not in result_outputs:
            reason = f"the result has no output {output.name!r}, which the original has"
            return Verdict(Kind.DIFFERS, reason), False
    start_count(2 if segment.unsimplified in (None, segment.result) else 3)
    start = time.perf_counter()
    try:
        # A wrong declared shape must not keep the original from running.
        original, run, refusal = _run_loadable(task, thorough)
    except EvaluationError as error:
        reason = f"the original does not {error.failed_to}, so there is nothing to compare with: {error}"
        if error.loading:
            reason += library_advice(str(error))
        elif feeds is None:
            reason += input_advice(original.model, error.node, str(error))
        verdict = Verdict(Kind.UNVERIFIED, reason, node=error.node, comparable=False)
        return with_load_failure(verdict, load_failure(original, segment.result)), False
    seconds = time.perf_counter() - start
    if task.leaves_out:
        run.leave_out_undefined(original)
    # A comparison of two models of the user's quotes the figures; so does a migration on inputs of the user's.
    measured = task.by_value or feeds is not None
    checked, tolerance = replace(task.segment, original=original), task.settings.tolerance
    checking = SegmentCheck(checked, run, tolerance, seconds, measured=measured)
    if refusal:
        checking.findings.notes.append(
            f"the original loads only without its declared shapes, and was run without them: {refusal}"
        )
    return checking.verdict(strict=task.strict, by_value=task.by_value)


def _run_loadable(task: Task, thorough: bool) -> tuple[Runnable, OriginalRun, str]:
    """Run the original, without static shapes if it does not load with them.

    Returns the model that ran, its run, and why the original did not load ("" if it did). Raises EvaluationError if
    neither runs, with the message of the original.
    """
    original, result, settings = task.segment.original, task.segment.result, task.settings
    claimed = task.segment.exact and task.segment.unsimplified == result
    once_more = not claimed or _takes_integers(original.model)
    extent = Extent(
        task.first_choice,
        tuple(_recorded(task)),
        thorough,
        once_more,
        # A user who sets a tolerance or a coarser type has ordinary numbers in mind, not very large or small ones.
        corners=settings.feeds is None and not task.segment.other_numbers,
        magnitudes=not settings.tolerance.is_given and task.segment.full_range,
        ended=task.ended,
    )
    if extent.recorded:
        with suppress(EvaluationError, MemoryError):  # it may fail because of these outputs
            return original, run_original(original, result, settings, extent), ""
    extent = replace(extent, recorded=())
    try:
        return original, run_original(original, result, settings, extent), ""
    except EvaluationError as error:
        if not error.loading or error.limit:
            raise
        refusal = str(error)
    flexible = without_static_shapes(original)
    try:
        return flexible, run_original(flexible, result, settings, extent), refusal
    except EvaluationError as error:
        raise EvaluationError(refusal, error.node, loading=error.loading) from error


def _recorded(task: Task) -> list[str]:
    """Return the inner values to record while the outputs are computed, by the likely sizes of inputs.

    The result is empty if the model that is compared bit for bit is not the one whose inner values are compared. It is also empty
    for a model that computes in float16. There, ONNX Runtime rounds a value to float16 if it is an output, but not between two
    nodes.
    """
    segment, feeds = task.segment, task.settings.feeds
    unsimplified = segment.unsimplified
    if is_narrow(segment.original.model):
        return []
    if unsimplified is None or not (segment.exact or unsimplified == segment.result):
        return []
    original, result = segment.original.model, segment.result.model
    if feeds is not None:
        return values_to_record(original, unsimplified.model, shapes_of(feeds.sets[0].inputs))
    try:
        shapes = input_shapes(original, result, size_choices(original)[task.first_choice])
    except UsageError:  # an input cannot be generated: then nothing runs
        return []
    return values_to_record(original, unsimplified.model, shapes)


def _takes_integers(model: onnx.ModelProto) -> bool:
    """Whether an input can choose rows of tables, like the ids of words; a single input then reads only a part of the table."""
    kinds = (value.type.tensor_type.elem_type for value in fed_inputs(model.graph))
    return any(kind in (TensorProto.INT32, TensorProto.INT64) for kind in kinds)
