"""Checks that ONNX Runtime loads a result if it loads the original: without inputs, like a user's first step with it."""

from __future__ import annotations

from dataclasses import replace

from onnx_migrate import process
from onnx_migrate.errors import LoadError
from onnx_migrate.process import with_grace
from onnx_migrate.verdicts import Kind, LoadFailure, Verdict
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.settings import Settings, interruption, is_crash_of_result

__all__ = ["LOADS", "check_loads", "with_load_failure"]

LOADS = "onnx_migrate.verify.loading:load_failure"
"""The function that the child process runs."""

_PROCESS = 1 << 28
"""Bytes that a process takes with ONNX Runtime and this package, and no model."""


def check_loads(
    original: Runnable | None, result: Runnable, settings: Settings
) -> tuple[LoadFailure | None, str]:
    """Load both models in a child process; return how the result fails, and why that is unknown ("" if it is known).

    A result that crashes the process fails. Without an original, the result must load in any case. The process may use the memory
    that loading usually needs, and no more than the limits allow. Raises LoadError if a file with weights has changed.
    """
    from onnx_migrate.verify.loading import load_doubt, loading_memory  # few results need it

    limits = settings.limits
    if limits.memory is not None and settings.isolated:
        limits = replace(limits, memory=min(limits.memory, _PROCESS + loading_memory(original, result)))
    with with_grace():  # also where the runs took all of the time: this says whether the result is of any use
        ending = replace(settings.alone, limits=limits).call(LOADS, original, result)
    if isinstance(ending, process.Returned):
        failure: LoadFailure | None = ending.value
        return failure, "" if failure else load_doubt(result)
    if isinstance(ending, process.Raised) and isinstance(ending.error, LoadError):
        raise ending.error
    if is_crash_of_result(ending):
        return LoadFailure(interruption(ending)), ""
    return None, f"whether the result loads is not known: {interruption(ending)}"


def with_load_failure(verdict: Verdict, failure: LoadFailure | None, doubt: str = "") -> Verdict:
    """Return the verdict on a result that could not be compared, and that does not load if there is a `failure`.

    `doubt`, if any, becomes a note: why it is not known whether the result loads.
    """
    verdict = replace(verdict, notes=(*verdict.notes, *filter(None, [doubt])))
    if failure is None or failure.limit:
        return replace(verdict, load=failure)
    reason = f"the result does not load: {failure.reason}"
    return replace(verdict, kind=Kind.DIFFERS, reason=reason, node=failure.node, load=failure)
