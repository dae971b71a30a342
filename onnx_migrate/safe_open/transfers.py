"""Downloads and uploads that cannot hang: each runs in a thread, which is abandoned if it is too slow or too large.

A server may accept a connection and send nothing, or send one byte a second, or never stop sending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, TypeVar

from onnx_migrate.process.cancellation import check_cancelled
from onnx_migrate.process.deadline import postpone
from onnx_migrate.process.refusals import starting

__all__ = ["StalledError", "StoppedError", "Transfer", "seconds_for_transfers", "transfers_within"]

Value = TypeVar("Value")

_SECONDS: ContextVar[float] = ContextVar("seconds for a transfer", default=600.0)

_RATE = 1 << 20
"""Minimum average rate of a transfer that goes on after its time, in bytes a second."""

_STALL = 30.0
"""A download that moved fewer than `_LEAST` bytes in so many seconds is stopped, even if it has time left."""

_LEAST = 30 << 10

_LONGEST_PAUSE = 0.25
"""Maximum seconds between two checks of a transfer's progress."""


class StoppedError(Exception):
    """A transfer was stopped early; the message says why."""


class StalledError(StoppedError):
    """A transfer was stopped early because hardly any bytes came."""


@contextmanager
def transfers_within(seconds: float) -> Iterator[None]:
    """Give each transfer in the block so many seconds; fast transfers of large files get more."""
    token = _SECONDS.set(seconds)
    try:
        yield
    finally:
        _SECONDS.reset(token)


def seconds_for_transfers() -> float:
    """Return how many seconds a transfer has."""
    return _SECONDS.get()


class Transfer:
    """One call of a file system that may never return, with a measure of its progress."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._told = 0

    def callback(self) -> Any:
        """Return a callback for fsspec; if the transfer was stopped, it ends the call when the next bytes come."""
        from fsspec.callbacks import Callback

        check = self._check

        class Stopping(Callback):  # type: ignore[misc, unused-ignore]
            def call(self, hook_name: str | None = None, **kwargs: Any) -> None:
                check(int(self.value))

        return Stopping()

    def _check(self, moved: int) -> None:
        self._told = moved
        self.check()

    def check(self) -> None:
        """Raise StoppedError in the call if the transfer was stopped: anything the call does next would come too late."""
        if self._stopped.is_set():
            raise StoppedError("given up")

    def run(
        self,
        call: Callable[[], Value],
        *,
        size: Callable[[], int] = lambda: 0,
        largest: int | None = None,
        enough: Callable[[], bool] = lambda: False,
        may_stall: bool = True,
    ) -> Value | None:
        """Make the call and return its value, or None if `enough` became true before.

        `size` returns how many bytes the call has moved; the callback may report more. Raises the errors of the call. Raises
        StoppedError if it takes more than its seconds, or moves more than `largest` bytes. Unless it `may_stall`, StoppedError
        also ends a call that hardly moves.
        """
        results: list[Value] = []
        failed: list[BaseException] = []
        call_ended = threading.Event()

        def work() -> None:
            try:
                results.append(call())
            except BaseException as error:
                failed.append(error)
            finally:
                call_ended.set()

        seconds = _SECONDS.get()
        start, pause = monotonic(), 0.01
        seen, since = 0, start
        # A daemon: a call that never returns must not keep the process.
        with starting():
            threading.Thread(target=work, daemon=True, name="onnx-migrate transfer").start()
        try:
            while not call_ended.wait(pause):
                check_cancelled()
                # Longer pauses make the checks of a long call cheap.
                pause = min(pause * 2, _LONGEST_PAUSE)
                moved = max(size(), self._told)
                # Slow but steady transfers are no stall.
                if moved >= seen + _LEAST:
                    seen, since = moved, monotonic()
                elif not may_stall and monotonic() - since > _STALL:
                    raise StalledError(
                        f"it stalls: {moved - seen:,} bytes came in the last {_STALL:g} s, at {moved:,} bytes"
                    )
                if largest is not None and moved > largest:
                    raise StoppedError(f"it has more than {largest:,} bytes, which is too much for this disk")
                if monotonic() - start > seconds + moved / _RATE:
                    raise StoppedError(
                        f"it has not ended after {monotonic() - start:.0f} s, at {moved:,} bytes"
                    )
                if enough():
                    return None
        finally:
            self._stopped.set()
            postpone(
                monotonic() - start
            )  # the call around has its time for the model, and the transfer its own
        if failed:
            raise failed[0]
        return results[0]
