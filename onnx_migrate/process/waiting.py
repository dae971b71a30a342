"""Waits for a child process until its limit, the deadline of the call, or a token that is set; without threads."""

from __future__ import annotations

import select
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from onnx_migrate.process.cancellation import INTERVAL, Stopped, can_be_cancelled, check_cancelled
from onnx_migrate.process.deadline import bounded
from onnx_migrate.process.signals import start_blocked

__all__ = ["Expired", "Waiting"]


class Expired(Exception):
    """The time of a request to a child process is over."""


class Waiting:
    """The time limit of one request to a child process: some seconds from now, None is no limit; messages give `told`."""

    def __init__(self, seconds: float | None, told: float) -> None:
        self.told = told
        self._end = None if seconds is None else monotonic() + seconds

    @classmethod
    def within(cls, seconds: float | None) -> Waiting:
        """Return the time limit of a request with a limit of its own, within the deadline of the call."""
        return cls(*bounded(seconds))

    def ready(self, file: socket.socket, *, write: bool = False) -> None:
        """Wait until the socket has bytes, or room for some. Raises Expired and Stopped."""
        poll = select.poll()
        poll.register(file, select.POLLOUT if write else select.POLLIN)
        while True:
            check_cancelled()
            remaining = None if self._end is None else max(0.0, self._end - monotonic())
            # Without a deadline and a token, nothing ends the wait but the socket.
            looks = [
                pause for pause in (remaining, INTERVAL if can_be_cancelled() else None) if pause is not None
            ]
            # poll(2) takes whole milliseconds, up to 24 days.
            if poll.poll(min(*looks, 1e6) * 1000 + 1 if looks else None):
                return
            if remaining == 0:
                raise Expired

    @contextmanager
    def killing(self, expire: Callable[[], None], kill: Callable[[], None]) -> Iterator[None]:
        """End the child by `expire` if the block takes too long, and by `kill` if the call is cancelled.

        On Windows a thread checks for both, since Windows cannot wait for a pipe. Raises Stopped.
        """
        if sys.platform == "win32":
            with self._watched(expire, kill):
                yield
            check_cancelled()
            return
        try:
            yield
        except Stopped:
            kill()
            raise

    @contextmanager
    def _watched(self, expire: Callable[[], None], kill: Callable[[], None]) -> Iterator[None]:
        block_ended = threading.Event()

        def watch() -> None:
            while not block_ended.wait(INTERVAL):
                if self._end is not None and monotonic() > self._end:
                    expire()
                    return
                try:
                    check_cancelled()
                except Stopped:
                    kill()
                    return

        # A new thread has no context variables, and the deadline and the cancellation are such.
        import contextvars

        watcher = threading.Thread(target=contextvars.copy_context().run, args=(watch,), daemon=True)
        start_blocked(watcher)
        try:
            yield
        finally:
            block_ended.set()
            watcher.join()
