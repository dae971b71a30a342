"""Signals blocked for the duration of a block, and in threads beside the main one."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["STOPS", "blocked", "start_blocked"]

STOPS: tuple[signal.Signals, ...] = (signal.SIGINT, signal.SIGTERM)
if sys.platform != "win32":
    STOPS = (*STOPS, signal.SIGALRM)
"""The signals whose handlers raise exceptions.

Most of them ask for an end; the handler of the last one, SIGALRM, raises an exception again.
"""


@contextmanager
def blocked(*numbers: signal.Signals) -> Iterator[None]:
    """Block signals in this thread until the block ends; threads and processes started in the block inherit this.

    A blocked signal is delivered when the block ends. On Windows, which has no signal masks, this does nothing.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_blocked(thread: threading.Thread) -> None:
    """Start a thread with signals blocked: otherwise Python would run handlers in the main thread, though that blocks them."""
    with blocked(*STOPS):
        thread.start()
