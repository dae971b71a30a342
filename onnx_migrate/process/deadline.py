"""The one deadline of a call. Its stages, child processes, repeated attempts and searches share it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from onnx_migrate.errors import UsageError

__all__ = [
    "LEAST_SECONDS",
    "Deadline",
    "bounded",
    "bounded_own_work",
    "current_deadline",
    "optional_seconds",
    "postpone",
    "seconds_left",
    "until",
    "with_grace",
]

LEAST_SECONDS = 3.0
"""Minimum time of a call's Python code in seconds, however small the call's limit is: imports take some of it."""

_GRACE, _LEAST_GRACE = 0.1, 2.0
"""The extra time for checking whether a result loads: a share of the call's limit, and a minimum in seconds."""


class Deadline:
    """The moment at which a call ends. A call within another one ends with the outer one at the latest.

    `spent` is how many of the seconds an earlier attempt took. Raises UsageError unless they are a number above 0.
    """

    def __init__(self, seconds: float, outer: Deadline | None = None, *, spent: float = 0.0) -> None:
        self.seconds = _checked(seconds)
        """The limit that the caller gave."""
        self._start, self._outer = monotonic() - spent, outer

    @property
    def own_seconds(self) -> float:
        """The seconds that the Python code of the call has."""
        return max(self.seconds, LEAST_SECONDS)

    def children_end(self) -> Deadline:
        """Return the deadline that ends first, for child processes: this one, or one of those around it."""
        outer = self._outer and self._outer.children_end()
        return outer if outer is not None and outer.left() < self.left() else self

    def left(self) -> float:
        """Return the seconds that child processes have from now on, never less than 0."""
        return max(0.0, self._start + self.seconds - monotonic())

    def own_work_left(self) -> float:
        """Return the seconds that the Python code of the call has from now on, 0 or less if it must end."""
        own = self._start + self.own_seconds - monotonic()
        return own if self._outer is None else min(own, self._outer.own_work_left())

    def grace_left(self) -> float:
        """Return the seconds until the call must have ended, including the time to check a result."""
        grace = max(_LEAST_GRACE, self.seconds * _GRACE)
        own = max(0.0, self._start + self.seconds + grace - monotonic())
        return own if self._outer is None else min(own, self._outer.grace_left())

    def postpone(self, seconds: float) -> None:
        """Let this deadline, and those around it, end later by the seconds that the transfer of a file took."""
        self._start += seconds
        if self._outer is not None:
            self._outer.postpone(seconds)


_deadline: ContextVar[Deadline | None] = ContextVar("onnx_migrate_deadline", default=None)
_in_grace: ContextVar[bool] = ContextVar("onnx_migrate_deadline_grace", default=False)


@contextmanager
def until(deadline: Deadline | None) -> Iterator[None]:
    """Let all work of the block share a deadline; None keeps the outer deadline."""
    if deadline is None:
        yield
        return
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def _checked(seconds: object) -> float:
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    try:
        limit = float(seconds) if is_number else math.nan  # type: ignore[arg-type]
    except OverflowError:
        limit = math.inf
    if not limit > 0:
        raise UsageError(
            f"timeout={seconds!r} is no number of seconds",
            hint='give a number above 0; float("inf") sets no limit',
        )
    return limit


@contextmanager
def with_grace() -> Iterator[None]:
    """Let child processes of the block use the call's extra time after its deadline, to check a result."""
    token = _in_grace.set(True)
    try:
        yield
    finally:
        _in_grace.reset(token)


def current_deadline() -> Deadline | None:
    """Return the deadline of the call that this code belongs to; None without one."""
    return _deadline.get()


def postpone(seconds: float) -> None:
    """Let the current call end later by the seconds that the transfer of a file took; transfers have a limit of their own."""
    deadline = _deadline.get()
    if deadline is not None:
        deadline.postpone(seconds)


def seconds_left() -> float:
    """Return the seconds that child processes of the current call still have, infinity without a deadline."""
    deadline = _deadline.get()
    if deadline is None:
        return math.inf
    return deadline.grace_left() if _in_grace.get() else deadline.children_end().left()


def bounded(seconds: float | None) -> tuple[float | None, float]:
    """Return the seconds that a child process may take, None for no limit, and the limit that messages give.

    `seconds` is the limit of this child alone. If the deadline of the call comes earlier, messages give the call's limit.
    """
    own, deadline = math.inf if seconds is None else seconds, _deadline.get()
    remaining = seconds_left()
    if remaining < own:
        assert deadline is not None
        return remaining, deadline.children_end().seconds
    return (None, own) if own == math.inf else (own, own)


def optional_seconds(seconds: float | None) -> float:
    """Return the seconds that an optional stage may take: half of the remaining time, so that other stages have some."""
    return min(math.inf if seconds is None else seconds, max(seconds_left() / 2, LEAST_SECONDS))


def bounded_own_work(seconds: float) -> float:
    """Return the seconds of a short native call whose failure the caller recovers from: at most half of the remaining time."""
    deadline = _deadline.get()
    return seconds if deadline is None else max(0.0, min(seconds, deadline.own_work_left() / 2))
