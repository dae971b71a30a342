"""A line on stderr every 30 seconds while a command runs without a terminal, so that a log shows that it is alive."""

from __future__ import annotations

import _thread
import contextlib
import os
import sys
from collections.abc import Callable

from onnx_migrate.messages import printable
from onnx_migrate.process.signals import STOPS, blocked

__all__ = ["Heartbeat"]

_PERIOD = 30.0
"""Seconds between two lines."""

_STDERR = 2
"""The file descriptor."""


class Heartbeat:
    """Writes what `line` returns every `period` seconds until the block ends.

    The thread that waits is none of `threading`: with one of those, workers would be no copies of this process, which start
    faster (`onnx_migrate.process.copied`). A copy is safe all the same, as the thread holds no lock while this process forks: it
    waits, or writes with one system call. SIGALRM, which needs no thread, has the time limit of the command.
    """

    def __init__(self, line: Callable[[], str], period: float = _PERIOD) -> None:
        self._line, self._period = line, period
        self._running = _thread.allocate_lock()

    def __enter__(self) -> Heartbeat:
        self._running.acquire()
        with blocked(*STOPS):  # the handlers of signals belong to the main thread
            _thread.start_new_thread(self._beat, ())
        return self

    def __exit__(self, *error: object) -> None:
        self._running.release()

    def _beat(self) -> None:
        while not self._running.acquire(timeout=self._period):
            self._write()
        self._running.release()

    def _write(self) -> None:
        """Write the line to the descriptor: the command may be in the middle of a write to the stream."""
        text = f"{printable(self._line())}\n".encode(
            getattr(sys.stderr, "encoding", None) or "utf-8", "replace"
        )
        with contextlib.suppress(OSError):  # nobody reads the log any more: the command goes on
            os.write(_STDERR, text)
