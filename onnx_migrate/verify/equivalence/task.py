"""The task of a verification, and the calls of the child process that does it.

The process that calls loads nothing of the comparison itself, which is larger than all that a migration else needs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from onnx_migrate import process
from onnx_migrate.model.model import Segment
from onnx_migrate.process import Worker, current_workers
from onnx_migrate.verdicts import FirstDifference, Kind, Verdict
from onnx_migrate.verify.equivalence.stages import (
    BRANCHES_STAGE,
    CORNERS_STAGE,
    DISTANCE_STAGE,
    OPTIMISED_STAGE,
    SIZES_STAGE,
)
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.load_check import check_loads, with_load_failure
from onnx_migrate.verify.settings import Settings, interruption, is_crash_of_result

__all__ = ["CHECK", "Task", "first_value", "ready_worker", "verify"]


@dataclass(frozen=True)
class Task:
    """The models that a verification compares, and how it compares them; `strict` and `by_value` are those of `verify`.

    The sizes of random inputs are tried from the choice `first_choice` on. After a crash, the next run starts at the choice that
    follows. `ended` has steps that ended an earlier process, with the way in which they did; such steps are skipped. If
    `leaves_out`, the check finds elements that the standard leaves undefined, and does not compare them.
    """

    segment: Segment[Runnable]
    settings: Settings
    strict: bool = False
    by_value: bool = False
    first_choice: int = 0
    ended: Mapping[str, str] = field(default_factory=dict)
    leaves_out: bool = False


CHECK = "onnx_migrate.verify.equivalence.check:check"
"""The function that the child process runs."""

FIRST_VALUE = "onnx_migrate.verify.equivalence.value_by_value:first_value"
"""The function that finds the first value which two models compute differently."""

_CRASHES = 6
"""Most crashes of the original before the verification gives up. For example, some lengths are too short for it."""


def ready_worker(settings: Settings) -> AbstractContextManager[Worker | None]:
    """Provide a child process that is ready to verify, or becomes ready on another core: its imports take a third of a second.

    If the settings have custom operators, the process is not kept afterwards, because native code may change any of its state.
    """
    if not settings.isolated:
        return nullcontext()
    modules = [CHECK.partition(":")[0], "onnxruntime"]
    return current_workers().borrowed(settings.limits.memory, modules, keep=not settings.libraries)


def _ends_a_process(ending: process.Ending) -> TypeGuard[process.Crashed | process.OutOfMemory]:
    """Whether a model ended the process that ran it, so that another run may leave that step out."""
    return isinstance(ending, process.OutOfMemory) or (
        isinstance(ending, process.Crashed) and not ending.from_outside
    )


def verify(
    segment: Segment[Runnable],
    settings: Settings | None = None,
    *,
    strict: bool = False,
    by_value: bool = False,
) -> Verdict:
    """Run original and result on the same inputs, in one child process, and compare every output.

    The result may differ by rounding (kernel/rules.py). If the segment is exact, the model before simplification must give every
    output of the original bit for bit, without optimisation. If `strict` is false, that model may also differ by ONNX Runtime's
    own rounding (value_by_value.py). The result of a segment that is not exact may differ by such rounding too, as far as the
    check shows its cause. With `by_value`, the check also compares inner values one by one, if the result keeps the names of all
    values and nobody claims bit-identity.

    The verdict reports any failure of the models. Raises UsageError for inputs that do not fit the original.
    """
    settings = settings or Settings()
    start = time.perf_counter()
    task = Task(segment, settings.for_child, strict, by_value)
    ending = settings.call(CHECK, task)
    for _ in range(_CRASHES):
        if not isinstance(ending, process.Crashed) or not ending.stage.startswith(SIZES_STAGE):
            break
        from onnx_migrate.verify.inputs.sizes import choice_after_crash, size_choices

        choices = size_choices(segment.original.proto())
        following = choice_after_crash(choices, int(ending.stage.removeprefix(SIZES_STAGE)))
        if following == len(choices):
            break
        task = replace(task, first_choice=following)
        ending = settings.call(CHECK, task)
    for stage in (CORNERS_STAGE, OPTIMISED_STAGE, BRANCHES_STAGE):
        if _ends_a_process(ending) and ending.stage == stage:
            task = replace(task, ended={**task.ended, stage: str(ending)})
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
    late = isinstance(ending, process.TimedOut)
    verdict = Verdict(
        Kind.UNVERIFIED, interruption(ending), seconds=seconds, comparable=comparable, timed_out=late
    )
    return with_load_failure(verdict, *loading)


def first_value(original: Runnable, result: Runnable, settings: Settings) -> FirstDifference:
    """Return the first value that two models compute differently, found in a child process; it may be unknown."""
    ending = settings.alone.call(FIRST_VALUE, original, result, settings.for_child)
    return ending.value if isinstance(ending, process.Returned) else FirstDifference(())
