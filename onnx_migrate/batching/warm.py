"""Jobs on a worker of somebody's executor, such as Dask's: in a child process that is kept for the next job."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

from onnx_migrate.batching.job import Job, Outcome
from onnx_migrate.batching.pool import LocalPool
from onnx_migrate.batching.submitter import Submitter, in_pool, memory_share

__all__ = ["run_warm"]

_IDLE_SECONDS = 60.0
"""How long a child process is kept without a job."""


class _Kept:
    """Pools of one child each that wait for a job; one that waits too long is ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int | None, list[tuple[LocalPool, threading.Timer]]] = {}

    def take(self, memory_limit: int | None) -> LocalPool:
        with self._lock:
            waiting = self._waiting.get(memory_limit)
            found = waiting.pop() if waiting else None
        if found is None:
            return LocalPool(1, memory_limit=memory_limit, threads_each=1)
        found[1].cancel()
        return found[0]

    def keep(self, pool: LocalPool, memory_limit: int | None) -> None:
        timer = threading.Timer(_IDLE_SECONDS, self._end, (pool, memory_limit))
        timer.daemon = True
        with self._lock:
            self._waiting.setdefault(memory_limit, []).append((pool, timer))
        timer.start()

    def _end(self, pool: LocalPool, memory_limit: int | None) -> None:
        with self._lock:
            waiting = self._waiting.get(memory_limit, [])
            found = next((item for item in waiting if item[0] is pool), None)
            if found is None:
                return  # it was taken as the time ended
            waiting.remove(found)
        pool.shutdown()


_KEPT = _Kept()


def _forget() -> None:
    """Start anew in a forked process, which has the pools of its parent but not their threads."""
    global _KEPT
    _KEPT = _Kept()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def run_warm(job: Job, timeout: float, memory_limit: int | None) -> Outcome:
    """Run a job in a child process of this one, with its limits, and return the outcome.

    As in a local batch, a job that ends its child or takes too long is run once more with its native stages in processes of
    their own. `timeout` is in seconds, `memory_limit` in bytes; by default children of all cores share three quarters of the
    machine's memory.
    """
    if memory_limit is None:
        memory_limit = memory_share(os.cpu_count() or 1)
    pool = _KEPT.take(memory_limit)
    submit = Submitter(in_pool(pool, timeout), retries=True)
    try:
        for isolated in (False, True):
            attempt = replace(job, isolated=isolated)
            outcome = submit.outcome(attempt, submit(attempt))
            if outcome is not None:
                return outcome
        raise AssertionError("an isolated job has an outcome")
    finally:
        _KEPT.keep(pool, memory_limit)
