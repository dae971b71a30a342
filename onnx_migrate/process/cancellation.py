"""Stops a call, including its child processes, when somebody asks for this or its time is over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from onnx_migrate.errors import Cancelled, MigrateError
from onnx_migrate.process.deadline import Deadline, current_deadline, until

__all__ = [
    "INTERVAL",
    "CancelToken",
    "OutOfTime",
    "Stopped",
    "can_be_cancelled",
    "check_cancelled",
    "check_stopped",
    "stoppable",
]

INTERVAL = 0.05
"""Seconds between two checks of the token while a child runs."""


class CancelToken(Protocol):
    """Says that a call must stop: a threading.Event, or another object with the method `is_set`."""

    def is_set(self) -> bool:
        """Return whether to stop."""


class Stopped(BaseException):
    """Carries the `error` of a stopped call up to `stoppable`, past all handlers of Exception."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class OutOfTime(Stopped):
    """The time of the call is over."""


_token: ContextVar[CancelToken | None] = ContextVar("onnx_migrate_cancel_token", default=None)


@contextmanager
def stoppable(
    token: CancelToken | None, seconds: float | None = None, *, spent: float = 0.0
) -> Iterator[None]:
    """Let a token, and a deadline in `seconds`, stop the block's work in this thread.

    An earlier attempt has `spent` some of the seconds; messages name the whole limit.
    Raises the error of a `Stopped`: Cancelled for the token, MigrateError with the code `timed-out` for the deadline.
    Raises UsageError if `seconds` is not a valid limit.
    """
    deadline = None if seconds is None else Deadline(seconds, current_deadline(), spent=spent)
    before = _token.set(_token.get() if token is None else token)
    try:
        with until(deadline):
            yield
            check_cancelled()
    except Stopped as stopped:
        raise stopped.error from stopped.error.__cause__
    finally:
        _token.reset(before)


def can_be_cancelled() -> bool:
    """Return whether the call of this thread has a token."""
    return _token.get() is not None


def check_cancelled() -> None:
    """Raise Stopped if the token of this thread's call is set."""
    token = _token.get()
    if token is not None and token.is_set():
        raise Stopped(Cancelled("it was cancelled, and nothing was written"))


def check_stopped(stage: str = "") -> None:
    """Raise Stopped if the token is set, or OutOfTime if the call's own work did not end in time."""
    check_cancelled()
    deadline = current_deadline()
    if deadline is not None and deadline.own_work_left() <= 0:
        seconds = deadline.children_end().own_seconds
        during = f", in the stage {stage!r}" if stage else ""
        raise OutOfTime(
            MigrateError(
                f"the model timed out after {seconds:g} s{during}, and nothing was written",
                code="timed-out",
                hint="--timeout, in Python timeout, allows more seconds",
            )
        )
