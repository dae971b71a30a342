"""The parent process's side of a verification: starts the child that compares, and judges how it ended."""

from __future__ import annotations

import time
from dataclasses import replace

from onnx_migrate import isolate
from onnx_migrate.isolate import Limits, Listener, Worker
from onnx_migrate.verdicts import Kind, Verdict
from onnx_migrate.verify.compare.tolerance import Tolerance
from onnx_migrate.verify.distance import DISTANCE_STAGE
from onnx_migrate.verify.equivalence.check import Task
from onnx_migrate.verify.equivalence.feed_search import SIZES_STAGE
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.inputs.sizes import choice_after_crash, size_choices
from onnx_migrate.verify.inputs.user_inputs import Feeds
from onnx_migrate.verify.interruption import interruption, is_crash_of_result
from onnx_migrate.verify.load_check import check_loads, with_load_failure

__all__ = ["CHECK", "ready_worker", "verify"]

CHECK = "onnx_migrate.verify.equivalence.check:check"
"""What runs in the child process."""

_CRASHES = 6
"""How often the original may crash, as on lengths that are too short for it, before the verification gives up."""


def ready_worker(limits: Limits) -> Worker:
    """Start a child process that gets ready to verify, on another core if one is free: its imports take a third of a second."""
    return Worker(limits.memory, [CHECK.partition(":")[0], "onnxruntime"])


def verify(
    original: Runnable,
    result: Runnable,
    *,
    exact: Runnable | None = None,
    lifted: Runnable | None = None,
    strict: bool = False,
    by_value: bool = False,
    other: Runnable | None = None,
    feeds: Feeds | None = None,
    tolerance: Tolerance | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    isolated: bool = True,
    listen: Listener | None = None,
    worker: Worker | None = None,
) -> Verdict:
    """Run both models on the same inputs, in one child process, and compare every output.

    `exact` is the model for which bit-identity is claimed; it may be the result itself. Without optimisation every
    output of it must be bit for bit that of the original, while the result may differ by rounding (tolerance.py). If
    `strict` is false, it may also differ by what ONNX Runtime rounds differently by itself (own_rounding.py).
    `lifted` is the result before simplification, where no identity is claimed: what of its difference is shown to be
    ONNX Runtime's own rounding is allowed too.
    With `by_value` and without `exact`, a result that keeps the names of all values is compared value by value as well.
    How far `other` is from the original is measured, and decides nothing.
    Without `feeds` the inputs are random (inputs/generate.py). Raises UsageError for `feeds` that do not fit the
    original; whatever the models do is in the verdict. `listen` gets how far the verification has come (run_count.py).
    `worker` is a child process that is ready for this, if there is one.
    """
    start = time.perf_counter()
    task = Task(
        original, result, exact, lifted, strict, by_value, feeds, tolerance or Tolerance(), seed, other=other
    )
    ending = isolate.run(CHECK, task, limits=limits, isolated=isolated, listen=listen, worker=worker)
    for _ in range(_CRASHES):
        if not isinstance(ending, isolate.Crashed) or not ending.stage.startswith(SIZES_STAGE):
            break
        choices = size_choices(original.proto())
        following = choice_after_crash(choices, int(ending.stage.removeprefix(SIZES_STAGE)))
        if following == len(choices):
            break
        task = replace(task, first_choice=following)
        ending = isolate.run(CHECK, task, limits=limits, isolated=isolated, listen=listen, worker=worker)
    if not isinstance(ending, (isolate.Returned, isolate.Raised)) and ending.stage == DISTANCE_STAGE:
        task = replace(task, other=None)
        ending = isolate.run(CHECK, task, limits=limits, isolated=isolated, listen=listen, worker=worker)
    seconds = time.perf_counter() - start
    if isinstance(ending, isolate.Returned):
        verdict: Verdict = ending.value
        return replace(verdict, seconds=seconds)
    if isinstance(ending, isolate.Raised) and ending.error is not None:
        raise ending.error
    if is_crash_of_result(ending):
        return Verdict(Kind.DIFFERS, interruption(ending), seconds=seconds)
    loading = check_loads(original, result, limits=limits, isolated=isolated)
    # Another result, as one without simplification, may take less memory.
    comparable = isinstance(ending, isolate.OutOfMemory) and ending.stage.startswith("result")
    verdict = Verdict(Kind.UNVERIFIED, interruption(ending), seconds=seconds, comparable=comparable)
    return with_load_failure(verdict, *loading)
