"""Worker processes on this machine: each makes one call after the other, and is replaced if a call ends it."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import Any

from onnx_migrate.process import Crashed, OutOfMemory, Raised, Returned, TimedOut, Workers

__all__ = ["LocalPool", "WorkerEndedError", "call_worker"]


class WorkerEndedError(Exception):
    """A call's worker process ended before the call did."""

    def __init__(self, ending: Crashed | OutOfMemory, *, started: bool = True, spent: float = 0.0) -> None:
        self.ending, self.started, self.spent = ending, started, spent
        last = ending.log.strip().rpartition("\n")[2]
        super().__init__(f"{ending}: {last}" if last else str(ending))


class WorkerTimeoutError(TimeoutError):
    """A call in a worker process took too long; `spent` is how many seconds."""

    def __init__(self, ending: TimedOut, spent: float) -> None:
        self.spent = spent
        super().__init__(str(ending))


class LocalPool:
    """A pool of `jobs` workers, started when there is work. A call that crashes or takes too long ends only its own worker.

    `memory_limit` is in bytes of private writable memory, for each call. The workers divide the processor's cores.
    """

    def __init__(self, jobs: int, *, memory_limit: int | None = None) -> None:
        self._memory_limit = memory_limit
        self._threads_each = max(1, (os.cpu_count() or 1) // max(1, jobs))
        self._workers = Workers(most=jobs)
        self._threads = ThreadPoolExecutor(jobs, "onnx-migrate-batch")
        self._refusal, self._closed = "", False

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    def schedule(self, fn: Callable[..., Any], *args: Any, timeout: float | None = None) -> Future[Any]:
        """Schedule a call with a time limit in seconds.

        The future raises TimeoutError after the limit, and WorkerEndedError when the worker ends. Raises RuntimeError after
        `shutdown`, and when workers end before they take a call, as with too little memory.
        """
        if self._refusal:
            raise RuntimeError(self._refusal)
        try:
            return self._threads.submit(self._called, fn, args, timeout)
        except RuntimeError as error:
            if self._closed or "interpreter shutdown" not in str(error):
                raise
            return self._called_now(fn, args, timeout)

    def _called_now(
        self, fn: Callable[..., Any], args: tuple[Any, ...], seconds: float | None
    ) -> Future[Any]:
        """Make a call in this thread, as the interpreter ends and starts no other."""
        future: Future[Any] = Future()
        try:
            future.set_result(self._called(fn, args, seconds))
        except Exception as error:  # which the future raises
            future.set_exception(error)
        return future

    def shutdown(self, *, at_once: bool = False) -> None:
        """End the workers after all calls, or `at_once` in the middle of their work."""
        self._closed = True
        if at_once:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._workers.close()
        self._threads.shutdown()
        self._workers.close()

    def _called(self, fn: Callable[..., Any], args: tuple[Any, ...], seconds: float | None) -> Any:
        """Make a call. Raises RuntimeError, for this and all later calls, if a worker does not even start."""
        if self._refusal:
            raise RuntimeError(self._refusal)
        try:
            return call_worker(
                self._workers,
                fn,
                *args,
                seconds=seconds,
                memory=self._memory_limit,
                threads=self._threads_each,
            )
        except WorkerEndedError as error:
            # A worker that started and then ended was ended by the call, which is no fault of the pool.
            if error.started or self._workers.closed:
                raise
            self._refusal = f"worker processes end as they start: {error}"
            raise RuntimeError(self._refusal) from error


def call_worker(
    workers: Workers,
    fn: Callable[..., Any],
    *args: Any,
    seconds: float | None,
    memory: int | None,
    threads: int,
) -> Any:
    """Call a function in one of these workers and return what it returns; raises as futures of `LocalPool` do."""
    begin = monotonic()
    with workers.borrowed(memory, threads=threads) as worker:
        ending = worker.call(fn, *args, seconds=seconds)
        started = worker.started
    if isinstance(ending, Returned):
        return ending.value
    if isinstance(ending, Raised):
        raise ending.error or RuntimeError(str(ending))
    spent = monotonic() - begin
    if isinstance(ending, TimedOut):
        raise WorkerTimeoutError(ending, spent)
    raise WorkerEndedError(ending, started=started, spent=spent)
