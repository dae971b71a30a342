"""Runs the jobs of a batch: in processes of this machine, or on a caller's executor, whose workers keep a child process.

Crashes, time-outs and lost jobs become outcomes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager
from dataclasses import replace

from onnx_migrate.batching.job import TIMED_OUT, Job, Outcome
from onnx_migrate.batching.pool import LocalPool, WorkerEndedError, call_worker
from onnx_migrate.batching.work import refused, run_job
from onnx_migrate.errors import MigrateError
from onnx_migrate.process import Limits, current_workers
from onnx_migrate.process.deadline import Deadline
from onnx_migrate.report.failure import Failure
from onnx_migrate.url import absolute, is_url

__all__ = ["Submitter", "run_warm", "submitting"]

_FIRST = 0.75
"""The share of a model's time for its first attempt, in a shared worker. The rest is for a second attempt."""


_START = 5.0
"""Seconds for the start and imports of a new worker: a job must reach its own deadline, whose error tells its progress."""


class Submitter:
    """Submits jobs by a function that returns a future, and returns their outcomes.

    With `retries`, a job whose worker ended, or took too long, gets a second attempt, with native stages in child processes.
    """

    def __init__(self, submit: Callable[[Job], Future[Outcome]], *, retries: bool) -> None:
        self._submit = submit
        self.retries = retries

    @classmethod
    def to_pool(cls, pool: LocalPool, timeout: float) -> Submitter:
        """Return a `Submitter` to a pool, which runs each job for at most so many seconds."""

        def submit(job: Job) -> Future[Outcome]:
            return pool.schedule(run_job, job, timeout=_seconds(job, timeout))

        return cls(submit, retries=True)

    def __call__(self, job: Job) -> Future[Outcome]:
        """Submit a job; an executor that does not accept it is an exception of the future."""
        try:
            return self._submit(job)
        except Exception as error:  # of any kind that a broken or closed executor raises
            future: Future[Outcome] = Future()
            future.set_exception(error)
            return future

    def outcome(self, job: Job, future: Future[Outcome]) -> Outcome | None:
        """Return the outcome of a job; None if the job needs a second attempt, which `again` returns."""
        try:
            return _named_as_given(future.result(), job)
        except (FutureTimeout, TimeoutError):
            error = MigrateError(
                f"the model timed out after {_limit_text(job)}, and was stopped",
                code=TIMED_OUT,
                hint="--timeout allows more seconds",
            )
        except WorkerEndedError as end:
            error = MigrateError(
                f"the model ended its worker process: {end}",
                code="crashed",
                hint="onnx-migrate MODEL OUTPUT shows in which stage; --memory-limit allows more memory",
            )
        except Exception as end:  # the executor did not accept it, or did not return an outcome
            reason = type(end).__name__ + (f": {end}" if str(end) else "")
            error = MigrateError(
                f"the executor lost the model: {reason}",
                code="worker-lost",
                hint="run the batch again with --resume to continue with the remaining models",
            )
        if self.retries and not job.isolated:
            return None
        return refused(job, error)

    def again(self, job: Job, future: Future[Outcome]) -> Job:
        """Return the job for its second attempt, which has the remaining time."""
        return replace(job, isolated=True, spent=getattr(future.exception(), "spent", 0.0))


def run_warm(job: Job, timeout: float, memory_limit: int | None) -> Outcome:
    """Run a job in a child process of this one, with its limits, and return the outcome.

    A job that ends its child or takes too long gets a second attempt, whose native stages run in processes of their own.
    `timeout` is in seconds, `memory_limit` in bytes. By default the children of all cores share three quarters of the memory.
    """
    if memory_limit is None:
        memory_limit = _memory_share(os.cpu_count() or 1)
    submit = Submitter(lambda job: _ended(job, timeout, memory_limit), retries=True)
    attempt = replace(job, isolated=False)
    while True:
        future = submit(attempt)
        outcome = submit.outcome(attempt, future)
        if outcome is not None:
            return outcome
        attempt = submit.again(attempt, future)


def _ended(job: Job, timeout: float, memory: int | None) -> Future[Outcome]:
    """Run a job in a kept child process, and return how it ended."""
    future: Future[Outcome] = Future()
    try:
        seconds = _seconds(job, timeout)
        ended = call_worker(current_workers(), run_job, job, seconds=seconds, memory=memory, threads=1)
        future.set_result(ended)
    except Exception as error:  # which the submitter tells
        future.set_exception(error)
    return future


@contextmanager
def submitting(
    executor: Executor | None, jobs: int, timeout: float, memory_limit: int | None
) -> Iterator[Submitter]:
    """Provide a `Submitter` to `executor`, or, if that is None, to a pool of `jobs` processes on this machine.

    `timeout` is the limit of a job in seconds, `memory_limit` that of a process in bytes. A worker of `executor` runs each job in
    a child process with these limits. A model in this process's memory runs in this process, without them. The end of the block
    ends all processes of the pool.
    """
    if executor is not None:

        def hand_over(job: Job) -> Future[Outcome]:
            if any((name or "").startswith("memory:") for name in (job.source, job.output)):
                return executor.submit(run_job, replace(job, isolated=True))
            return executor.submit(run_warm, _anywhere(job), timeout, memory_limit)

        yield Submitter(hand_over, retries=False)
        return
    pool = LocalPool(jobs, memory_limit=_memory_share(jobs) if memory_limit is None else memory_limit)
    try:
        yield Submitter.to_pool(pool, timeout)
    finally:
        pool.shutdown(at_once=True)  # every job has ended, or the batch stops at once


def _seconds(job: Job, timeout: float) -> float:
    """Return the seconds after which the pool ends a job's worker; a second attempt has time to end and to check its result."""
    if not job.isolated:
        return timeout * _FIRST
    return Deadline(timeout, spent=job.spent).grace_left() + _START


def _memory_share(processes: int) -> int | None:
    """Return the bytes that each of so many processes may use, None if unknown."""
    return (Limits().memory or 0) // processes or None


def _anywhere(job: Job) -> Job:
    """Return a job with absolute paths, as the worker's working folder may be another."""
    arguments = dict(job.arguments)
    from onnx_migrate.verify.inputs.given import absolute_text, texts_of

    texts = texts_of(arguments.get("input_data"))
    if texts:
        arguments["input_data"] = (
            [absolute_text(text) for text in texts] if len(texts) > 1 else absolute_text(texts[0])
        )
    output = None if job.output is None else _absolute(job.output)
    return replace(job, source=_absolute(job.source), output=output, arguments=arguments)


def _absolute(name: str) -> str:
    return name if is_url(name) else absolute(name)


def _named_as_given(outcome: Outcome, job: Job) -> Outcome:
    """Return an outcome with the path of the model as the caller gave it: a worker elsewhere knows an absolute path."""
    there = _absolute(job.source)
    # The worker ended before it could name the model.
    if outcome.source == job.source or not outcome.source:
        return replace(outcome, source=job.source, output=job.output)

    def named(text: str) -> str:
        return text.replace(there, job.source)

    report = outcome.report
    if isinstance(report, Failure):
        partial_report = replace(report.done, model=job.source)
        report = replace(report, model=job.source, reason=named(report.reason), done=partial_report)
    elif report is not None:
        report = replace(report, model=job.source)
    return replace(
        outcome,
        source=job.source,
        output=job.output,
        reason=named(outcome.reason),
        doubt=named(outcome.doubt),
        remarks=tuple(map(named, outcome.remarks)),
        report=report,
    )


def _limit_text(job: Job) -> str:
    """Return the time limit of a job in words."""
    seconds = job.arguments.get("timeout")
    return "its time limit" if seconds is None else f"{seconds:g} s"
