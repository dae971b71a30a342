"""Stops what a call does, its child processes included, once somebody has asked for that."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from onnx_migrate.errors import Cancelled
from onnx_migrate.process.signals import start_blocked

__all__ = ["CancelToken", "Stopped", "check_cancelled", "stoppable", "when_cancelled"]

_INTERVAL = 0.05
"""Seconds between two looks at the token while a child runs."""


class CancelToken(Protocol):
    """What says that a call is to stop: a threading.Event, or anything else with `is_set`."""

    def is_set(self) -> bool:
        """Return whether to stop."""


class Stopped(BaseException):
    """Carries the `error` of a call that is to stop up to `stoppable`, past all that recovers from an Exception."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


_token: ContextVar[CancelToken | None] = ContextVar("onnx_migrate_cancel_token", default=None)


@contextmanager
def stoppable(token: CancelToken | None) -> Iterator[None]:
    """Let a token stop what the block does in this thread. Raises the error of a `Stopped`: Cancelled, if by the token."""
    before = _token.set(_token.get() if token is None else token)
    try:
        yield
        check_cancelled()
    except Stopped as stopped:
        raise stopped.error from stopped.error.__cause__
    finally:
        _token.reset(before)


def check_cancelled() -> None:
    """Raise Stopped if the token of this thread's call is set."""
    token = _token.get()
    if token is not None and token.is_set():
        raise Stopped(Cancelled("it was cancelled, and nothing was written"))


@contextmanager
def when_cancelled(act: Callable[[], None]) -> Iterator[None]:
    """Call `act`, in another thread, as soon as the token is set during the block. Raises Stopped then."""
    check_cancelled()
    token = _token.get()
    if token is None:
        yield
        return
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_INTERVAL):
            if token.is_set():
                act()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    start_blocked(watcher)
    try:
        yield
    finally:
        done.set()
        watcher.join()
    check_cancelled()
