"""Where the jobs of a batch run: in processes of this machine, or on an executor of the caller's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import replace

from onnx_migrate.batching.job import Job, Outcome
from onnx_migrate.batching.pool import LocalPool
from onnx_migrate.batching.submitter import Submitter, in_pool, memory_share
from onnx_migrate.batching.warm import run_warm
from onnx_migrate.batching.work import run_job
from onnx_migrate.url import is_url

__all__ = ["submitting"]


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
