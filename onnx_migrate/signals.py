"""Signals that wait."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["blocked"]


@contextmanager
def blocked(*numbers: signal.Signals) -> Iterator[None]:
    """Keep signals from this thread until the block ends, and from threads and processes that it starts in it.

    Where there are no signal masks, nothing is blocked.
    """
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
