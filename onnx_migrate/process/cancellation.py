"""Stops what a call does, its child processes included, once somebody asks for that or its time is over."""

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
"""Seconds between two looks at the token while a child runs."""


class CancelToken(Protocol):
    """Says that a call is to stop: a threading.Event, or anything else with `is_set`."""

    def is_set(self) -> bool:
        """Return whether to stop."""


class Stopped(BaseException):
    """Carries the `error` of a call that is to stop up to `stoppable`, past all that recovers from an Exception."""

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
    """Let a token, and a deadline in `seconds`, stop what the block does in this thread.

    An attempt before the block has `spent` some of the seconds; messages name the limit as a whole.
    Raises the error of a `Stopped`: Cancelled for the token, MigrateError with the code `timed-out` for the deadline.
    Raises UsageError where `seconds` is no limit.
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
    """Raise Stopped if the token is set, or OutOfTime where the own work of the call has not ended in time."""
    check_cancelled()
    deadline = current_deadline()
    if deadline is not None and deadline.own_work_left() <= 0:
        seconds = deadline.children_end().own_seconds
        during = f", in the stage {stage!r}" if stage else ""
        raise OutOfTime(
            MigrateError(
                f"the model was not done after {seconds:g} s{during}, and nothing was written",
                code="timed-out",
                hint="--timeout, in Python timeout, allows more seconds",
            )
        )
