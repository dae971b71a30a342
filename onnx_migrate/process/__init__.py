"""Runs work in child processes: native code may crash, hang or take all memory there without harm to this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx_migrate.lazy_names import lazy_names

if TYPE_CHECKING:
    from onnx_migrate.process.cancellation import (
        CancelToken,
        OutOfTime,
        check_cancelled,
        check_stopped,
        stoppable,
    )
    from onnx_migrate.process.child import Listener, captured_output, heard_by, mark, say
    from onnx_migrate.process.deadline import postpone, seconds_left, with_grace
    from onnx_migrate.process.endings import Crashed, Ending, OutOfMemory, Raised, Returned, TimedOut
    from onnx_migrate.process.forked import call_in_fork
    from onnx_migrate.process.limits import Limits
    from onnx_migrate.process.supervised import Program
    from onnx_migrate.process.worker import Worker
    from onnx_migrate.process.workers import Workers, current_workers, run, using

__all__ = [
    "CancelToken",
    "Crashed",
    "Ending",
    "Limits",
    "Listener",
    "OutOfMemory",
    "OutOfTime",
    "Program",
    "Raised",
    "Returned",
    "TimedOut",
    "Worker",
    "Workers",
    "call_in_fork",
    "captured_output",
    "check_cancelled",
    "check_stopped",
    "current_workers",
    "heard_by",
    "mark",
    "postpone",
    "run",
    "say",
    "seconds_left",
    "stoppable",
    "using",
    "with_grace",
]

__getattr__ = lazy_names(
    __name__,
    {
        "cancellation": "CancelToken OutOfTime check_cancelled check_stopped stoppable",
        "child": "Listener captured_output heard_by mark say",
        "deadline": "postpone seconds_left with_grace",
        "endings": "Crashed Ending OutOfMemory Raised Returned TimedOut",
        "forked": "call_in_fork",
        "limits": "Limits",
        "supervised": "Program",
        "worker": "Worker",
        "workers": "Workers current_workers run using",
    },
)
