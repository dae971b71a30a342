"""Worker processes on this machine, each given one call after the other, and replaced when one brings it down."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

from onnx_migrate.process import Crashed, Ending, OutOfMemory, Raised, Returned, TimedOut, Worker

__all__ = ["LocalPool", "WorkerEndedError"]


class WorkerEndedError(Exception):
    """A call's worker process ended before the call did."""

    def __init__(self, ending: Crashed | OutOfMemory) -> None:
        self.ending = ending
        last = ending.log.strip().rpartition("\n")[2]
        super().__init__(f"{ending}: {last}" if last else str(ending))


@dataclass(frozen=True)
class _Call:
    future: Future[Any]
    function: Callable[..., Any]
    args: tuple[Any, ...]
    seconds: float | None


class LocalPool:
    """`jobs` workers, started when there is work. A call that crashes its worker or takes too long ends no other.

    `memory_limit` is in bytes of private writable memory, for each worker. The workers divide the processor's cores, or have
    `threads_each`. One that has no work for `idle` seconds is ended.
    """

    def __init__(
        self,
        jobs: int,
        *,
        memory_limit: int | None = None,
        threads_each: int | None = None,
        idle: float | None = None,
    ) -> None:
        self._memory_limit = memory_limit
        self._idle = idle
        self._threads_each = threads_each or max(1, (os.cpu_count() or 1) // max(1, jobs))
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._workers: set[Worker] = set()
        self._lock = threading.Lock()  # of the fields below and of `_workers`
        self._refusal = ""
        self._cancelled = False
        self._workers_start = True
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(jobs)]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()

    def schedule(self, fn: Callable[..., Any], *args: Any, timeout: float | None = None) -> Future[Any]:
        """Schedule a call with a time limit in seconds.

        The future raises TimeoutError past it, and WorkerEndedError when the worker ends. Raises RuntimeError after
        `shutdown`, and when workers end before they take a call, as with too little memory.
        """
        future: Future[Any] = Future()
        with self._lock:
            if self._refusal:
                raise RuntimeError(self._refusal)
            self._calls.put(_Call(future, fn, args, timeout))
        return future

    def shutdown(self, *, at_once: bool = False) -> None:
        """End the workers: when all is done, or at once, whatever they do."""
        with self._lock:
            self._refusal = self._refusal or "cannot schedule new calls after shutdown"
            self._cancelled = self._cancelled or at_once
            for worker in self._workers if at_once else ():
                worker.kill()
            for _ in self._threads:
                self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        """Pass calls to a worker that this thread starts, and replaces when it has ended."""
        worker: Worker | None = None
        while True:
            try:
                call = self._calls.get(timeout=self._idle if worker else None)
            except Empty:
                self._end(worker)
                worker = None
                continue
            if call is None:
                break
            if self._cancelled:
                call.future.cancel()
            if not call.future.set_running_or_notify_cancel():
                continue
            try:
                if self._refusal and not self._workers_start:
                    raise RuntimeError(self._refusal)
                worker = worker or self._start()
                _settle(call, self._ending(worker, call))
            except Exception as error:  # arguments that do not pickle, or no process can be started
                call.future.set_exception(error)
            if worker is not None and not worker.alive:
                self._end(worker)
                worker = None
        self._end(worker)

    def _start(self) -> Worker:
        worker = Worker(self._memory_limit, threads=self._threads_each)
        with self._lock:
            self._workers.add(worker)
            if self._cancelled:
                worker.kill()
        return worker

    def _end(self, worker: Worker | None) -> None:
        if worker is not None:
            with self._lock:
                self._workers.remove(worker)
            worker.close()

    def _ending(self, worker: Worker, call: _Call) -> Ending:
        """Make a call. Raises RuntimeError, for this and all later calls, where a worker does not even start."""
        ending = worker.call(call.function, *call.args, seconds=call.seconds)
        if isinstance(ending, (Crashed, OutOfMemory)) and not worker.started and not self._cancelled:
            with self._lock:
                self._workers_start = False
                self._refusal = f"worker processes end as they start: {WorkerEndedError(ending)}"
            raise RuntimeError(self._refusal)
        return ending


def _settle(call: _Call, ending: Ending) -> None:
    if isinstance(ending, Returned):
        call.future.set_result(ending.value)
    elif isinstance(ending, Raised):
        call.future.set_exception(ending.error or RuntimeError(str(ending)))
    elif isinstance(ending, TimedOut):
        call.future.set_exception(TimeoutError(str(ending)))
    else:
        call.future.set_exception(WorkerEndedError(ending))
