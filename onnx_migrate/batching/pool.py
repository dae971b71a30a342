"""Worker processes on this machine, each given one call after the other, and replaced when one brings it down."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from onnx_migrate.process import Crashed, OutOfMemory, Raised, Returned, TimedOut, Workers

__all__ = ["LocalPool", "WorkerEndedError", "call_worker"]


class WorkerEndedError(Exception):
    """A call's worker process ended before the call did."""

    def __init__(self, ending: Crashed | OutOfMemory, *, started: bool = True) -> None:
        self.ending, self.started = ending, started
        last = ending.log.strip().rpartition("\n")[2]
        super().__init__(f"{ending}: {last}" if last else str(ending))


class LocalPool:
    """`jobs` workers, started when there is work. A call that crashes its worker or takes too long ends no other.

    `memory_limit` is in bytes of private writable memory, for each call. The workers divide the processor's cores.
    """

    def __init__(self, jobs: int, *, memory_limit: int | None = None) -> None:
        self._memory_limit = memory_limit
        self._threads_each = max(1, (os.cpu_count() or 1) // max(1, jobs))
        self._workers = Workers(most=jobs)
        self._threads = ThreadPoolExecutor(jobs, "onnx-migrate-batch")
        self._refusal = ""

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    def schedule(self, fn: Callable[..., Any], *args: Any, timeout: float | None = None) -> Future[Any]:
        """Schedule a call with a time limit in seconds.

        The future raises TimeoutError past it, and WorkerEndedError when the worker ends. Raises RuntimeError after
        `shutdown`, and when workers end before they take a call, as with too little memory.
        """
        if self._refusal:
            raise RuntimeError(self._refusal)
        return self._threads.submit(self._called, fn, args, timeout)

    def shutdown(self, *, at_once: bool = False) -> None:
        """End the workers: when all is done, or at once, whatever they do."""
        if at_once:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._workers.close()
        self._threads.shutdown()
        self._workers.close()

    def _called(self, fn: Callable[..., Any], args: tuple[Any, ...], seconds: float | None) -> Any:
        """Make a call. Raises RuntimeError, for this and all later calls, where a worker does not even start."""
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
    with workers.borrowed(memory, threads=threads) as worker:
        ending = worker.call(fn, *args, seconds=seconds)
        started = worker.started
    if isinstance(ending, Returned):
        return ending.value
    if isinstance(ending, Raised):
        raise ending.error or RuntimeError(str(ending))
    if isinstance(ending, TimedOut):
        raise TimeoutError(str(ending))
    raise WorkerEndedError(ending, started=started)
