"""Submits jobs to an executor, and turns crashes, time-outs and lost jobs into outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import replace

from onnx_migrate.batching.job import Job, Outcome
from onnx_migrate.batching.pool import LocalPool, WorkerEndedError
from onnx_migrate.batching.work import refused, run_job
from onnx_migrate.errors import MigrateError
from onnx_migrate.isolate import Limits
from onnx_migrate.url import is_url

__all__ = ["Submitter", "submitting"]

_STAGES = 3
"""How many time limits a model may take when its native stages run in child processes, each with the time limit."""

Submit = Callable[[Job], "Future[Outcome]"]


@contextmanager
def submitting(
    executor: Executor | None, jobs: int, timeout: float, memory_limit: int | None
) -> Iterator[Submitter]:
    """Provide what submits jobs to `executor`, or, if that is None, to a pool of `jobs` processes on this machine.

    `timeout` (seconds for each job) and `memory_limit` (bytes for each process) are those of the pool. When the block
    ends, the pool's processes are ended, whatever they do.
    """
    if executor is not None:
        yield Submitter(lambda job: executor.submit(run_job, _anywhere(job)), retries=False)
        return
    if memory_limit is None:
        memory_limit = (Limits().memory or 0) // jobs or None
    pool = LocalPool(jobs, timeout=timeout, memory_limit=memory_limit)

    def submit(job: Job) -> Future[Outcome]:
        return pool.schedule(run_job, job, timeout=timeout * _STAGES if job.isolated else timeout)

    try:
        yield Submitter(submit, retries=True)
    finally:
        pool.shutdown(cancel_futures=True)  # every job has ended, or the batch stops at once


def _anywhere(job: Job) -> Job:
    """Return a job with absolute paths, as the worker's working folder may be another."""
    arguments = dict(job.arguments)
    if arguments.get("input_data") is not None:
        arguments["input_data"] = os.path.abspath(arguments["input_data"])
    output = None if job.output is None else _absolute(job.output)
    return replace(job, source=_absolute(job.source), output=output, arguments=arguments)


def _absolute(name: str) -> str:
    return name if is_url(name) else os.path.abspath(name)


class Submitter:
    """Submits jobs to an executor.

    With `retries`, a job whose worker ended, or took too long, is run once more with its native stages in child
    processes of their own.
    """

    def __init__(self, submit: Submit, *, retries: bool) -> None:
        self._submit = submit
        self.retries = retries

    def __call__(self, job: Job) -> Future[Outcome]:
        """Submit a job; an executor that does not accept it is an exception of the future."""
        try:
            return self._submit(job)
        except Exception as error:  # of any kind that a broken or closed executor raises
            future: Future[Outcome] = Future()
            future.set_exception(error)
            return future

    def outcome(self, job: Job, future: Future[Outcome]) -> Outcome | None:
        """Return how a job ended; None where it must be run once more."""
        try:
            return replace(future.result(), source=job.source, output=job.output)
        except (FutureTimeout, TimeoutError):
            error = MigrateError(
                "took longer than the time limit and was stopped",
                code="timed-out",
                hint="--timeout allows more seconds",
            )
        except WorkerEndedError as end:
            error = MigrateError(
                f"the model ended its worker process: {end}",
                code="crashed",
                hint="onnx-migrate MODEL OUTPUT shows in which stage; --memory-limit allows more memory",
            )
        except Exception as end:
            error = _loss(end)
        if self.retries and not job.isolated:
            return None
        return refused(job, error)


def _loss(end: Exception) -> MigrateError:
    """Return the error of a job that an executor did not accept, or did not return an outcome of."""
    reason = f"the executor lost the model: {type(end).__name__}" + (f": {end}" if str(end) else "")
    return MigrateError(
        reason, code="worker-lost", hint="run the batch again with --resume to do what is left"
    )
