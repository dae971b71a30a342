"""Where the jobs of a batch run: in processes of this machine, or on a caller's executor, whose workers keep a child process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace

from onnx_migrate.batching.job import Job, Outcome
from onnx_migrate.batching.pool import LocalPool
from onnx_migrate.batching.submitter import Submitter, in_pool, memory_share
from onnx_migrate.batching.work import run_job
from onnx_migrate.url import is_url

__all__ = ["run_warm", "submitting"]

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


@contextmanager
def submitting(
    executor: Executor | None, jobs: int, timeout: float, memory_limit: int | None
) -> Iterator[Submitter]:
    """Provide what submits jobs to `executor`, or, if that is None, to a pool of `jobs` processes on this machine.

    `timeout` (seconds for each job) and `memory_limit` (bytes for each process) are those of the pool, and of the child process
    in which a worker of `executor` runs a job; a model in this process's memory is run in this process, without them. When the
    block ends, the pool's processes are ended, whatever they do.
    """
    if executor is not None:

        def hand_over(job: Job) -> Future[Outcome]:
            if any((name or "").startswith("memory:") for name in (job.source, job.output)):
                return executor.submit(run_job, replace(job, isolated=True))
            return executor.submit(run_warm, _anywhere(job), timeout, memory_limit)

        yield Submitter(hand_over, retries=False)
        return
    if memory_limit is None:
        memory_limit = memory_share(jobs)
    pool = LocalPool(jobs, memory_limit=memory_limit)
    try:
        yield Submitter(in_pool(pool, timeout), retries=True)
    finally:
        pool.shutdown(cancel_futures=True)  # every job has ended, or the batch stops at once


def _anywhere(job: Job) -> Job:
    """Return a job with absolute paths, as the worker's working folder may be another."""
    arguments = dict(job.arguments)
    if isinstance(arguments.get("input_data"), (str, os.PathLike)):
        arguments["input_data"] = os.path.abspath(arguments["input_data"])
    output = None if job.output is None else _absolute(job.output)
    return replace(job, source=_absolute(job.source), output=output, arguments=arguments)


def _absolute(name: str) -> str:
    return name if is_url(name) else os.path.abspath(name)
