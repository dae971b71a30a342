"""Submits one job, and turns crashes, time-outs and lost jobs into outcomes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace

from onnx_migrate.batching.job import Job, Outcome
from onnx_migrate.batching.pool import LocalPool, WorkerEndedError
from onnx_migrate.batching.work import refused, run_job
from onnx_migrate.errors import MigrateError
from onnx_migrate.process import Limits

__all__ = ["Submitter", "in_pool", "memory_share"]

_STAGES = 3
"""How many time limits a model may take when its native stages run in child processes, each with the time limit."""

Submit = Callable[[Job], "Future[Outcome]"]


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


def in_pool(pool: LocalPool, timeout: float) -> Submit:
    """Return what runs jobs in a pool, each for so many seconds at most."""

    def submit(job: Job) -> Future[Outcome]:
        return pool.schedule(run_job, job, timeout=timeout * _STAGES if job.isolated else timeout)

    return submit


def memory_share(processes: int) -> int | None:
    """Return how many bytes each of so many processes may use, None if that is not known."""
    return (Limits().memory or 0) // processes or None


def _loss(end: Exception) -> MigrateError:
    """Return the error of a job that an executor did not accept, or did not return an outcome of."""
    reason = f"the executor lost the model: {type(end).__name__}" + (f": {end}" if str(end) else "")
    return MigrateError(
        reason, code="worker-lost", hint="run the batch again with --resume to do what is left"
    )
