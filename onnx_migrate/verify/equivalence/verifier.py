"""The parent process's side of a verification: starts the child that compares, and judges how it ended."""

from __future__ import annotations

import time
from dataclasses import replace

from onnx_migrate import process
from onnx_migrate.model.model import Segment
from onnx_migrate.process import Limits, Worker
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify.equivalence.check import Task
from onnx_migrate.verify.equivalence.feed_search import SIZES_STAGE
from onnx_migrate.verify.equivalence.result_run import DISTANCE_STAGE
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.inputs.sizes import choice_after_crash, size_choices
from onnx_migrate.verify.load_check import check_loads, with_load_failure
from onnx_migrate.verify.settings import Settings, interruption, is_crash_of_result

__all__ = ["CHECK", "ready_worker", "verify"]

CHECK = "onnx_migrate.verify.equivalence.check:check"
"""What runs in the child process."""

_CRASHES = 6
"""How often the original may crash, as on lengths that are too short for it, before the verification gives up."""


def ready_worker(limits: Limits) -> Worker:
    """Start a child process that gets ready to verify, on another core if one is free: its imports take a third of a second."""
    return Worker(limits.memory, [CHECK.partition(":")[0], "onnxruntime"])


def verify(
    segment: Segment[Runnable],
    settings: Settings | None = None,
    *,
    strict: bool = False,
    by_value: bool = False,
) -> Verdict:
    """Run original and result on the same inputs, in one child process, and compare every output.

    The result may differ by rounding (tolerance.py). If the segment is exact, every output of the model before
    simplification must be bit for bit that of the original without optimisation. If
    `strict` is false, it may also differ by what ONNX Runtime rounds differently by itself (value_by_value.py). Where no
    identity is claimed, what of that model's difference is shown to be ONNX Runtime's own rounding is allowed too.
    With `by_value` a result for which none is claimed, and that keeps the names of all values, is compared value by value
    as well. Raises UsageError for inputs that do not fit the
    original; whatever the models do is in the verdict.
    """
    settings = settings or Settings()
    start = time.perf_counter()
    task = Task(segment, settings.for_child, strict, by_value)
    ending = settings.call(CHECK, task)
    for _ in range(_CRASHES):
        if not isinstance(ending, process.Crashed) or not ending.stage.startswith(SIZES_STAGE):
            break
        choices = size_choices(segment.original.proto())
        following = choice_after_crash(choices, int(ending.stage.removeprefix(SIZES_STAGE)))
        if following == len(choices):
            break
        task = replace(task, first_choice=following)
        ending = settings.call(CHECK, task)
    if not isinstance(ending, (process.Returned, process.Raised)) and ending.stage == DISTANCE_STAGE:
        task = replace(task, segment=replace(segment, other=None))
        ending = settings.call(CHECK, task)
    seconds = time.perf_counter() - start
    if isinstance(ending, process.Returned):
        verdict: Verdict = ending.value
        return replace(verdict, seconds=seconds)
    if isinstance(ending, process.Raised) and ending.error is not None:
        raise ending.error
    if is_crash_of_result(ending):
        return Verdict(Kind.DIFFERS, interruption(ending), seconds=seconds)
    loading = check_loads(segment.original, segment.result, settings)
    # Another result, as one without simplification, may take less memory.
    comparable = isinstance(ending, process.OutOfMemory) and ending.stage.startswith("result")
    verdict = Verdict(Kind.UNVERIFIED, interruption(ending), seconds=seconds, comparable=comparable)
    return with_load_failure(verdict, *loading)
