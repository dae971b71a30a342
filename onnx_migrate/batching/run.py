"""Many models, one after the other or side by side, none of which can take another with it."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx_migrate.batching.find import find, place
from onnx_migrate.batching.job import Job, Outcome, Summary
from onnx_migrate.batching.journal import Journal
from onnx_migrate.batching.pool import LocalPool, WorkerEndedError
from onnx_migrate.batching.work import refused, run_job
from onnx_migrate.errors import MigrateError, UsageError
from onnx_migrate.isolate import Limits
from onnx_migrate.url import is_url, resolve_file_url

__all__ = ["Watcher", "batch", "run"]

_TICK = 0.2
"""Seconds between two checks of which jobs have begun."""

_WINDOW = 1000
"""Jobs that are submitted to the executor at a time."""

_STAGES = 3
"""A model whose native stages run in child processes of their own, each with the time limit, may take so many limits."""


class Watcher:
    """Is told how a batch goes; a base to override."""

    def planned(self, total: int) -> None:
        """So many models are to be done."""

    def started(self, job: Job) -> None:
        """A model is being worked on."""

    def ended(self, outcome: Outcome) -> None:
        """A model is done."""

    def finished(self, summary: Summary) -> None:
        """The batch is over, or interrupted."""


def batch(
    sources: Iterable[str | os.PathLike[str]],
    out_dir: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    resume: bool = False,
    external: bool = False,
    timeout: float = 600.0,
    memory_limit: int | None = None,
    watcher: Watcher | None = None,
    arguments_of: Callable[[str], Mapping[str, Any]] | None = None,
    **arguments: Any,
) -> Summary:
    """Migrate files, folders (their structure is kept) and glob patterns into `out_dir`.

    Args:
        sources: see `find`.
        out_dir: a folder, made if it is not there, which also gets a journal of what was done; or a URL, without.
        executor: any `concurrent.futures.Executor` whose workers have this package and see the same files; by
            default processes of this machine, which are replaced when a model brings one down.
        jobs: how many such processes; as many as there are processors by default.
        fail_fast: stop at the first model that is not migrated.
        resume: pass over models of which the journal says that the same content was migrated with the same options
            by the same versions, and whose results are still there as they were written; not where `out_dir` is a URL.
        external: write weights beside every result.
        timeout: seconds that a model may take; a model that takes longer, or crashes its process, is tried once more
            with each native stage in a child process of its own, limited to these seconds.
        memory_limit: bytes of each process; three quarters of the machine's over all by default.
        watcher: is told of every model; outcomes are not kept.
        arguments_of: what else to do with a model, by its path: of `arguments` and `external`.
        arguments: as for `migrate`.

    Returns the totals. Raises UsageError where nothing can be done at all, and whatever `watcher` raises, having
    ended the workers.
    """
    folder = resolve_file_url(os.fspath(out_dir))
    if resume and is_url(folder):
        raise UsageError(
            f"{folder}: --resume goes by a journal that grows with each model, and objects behind a URL do not grow",
            hint="leave --resume out, or give a folder of this machine",
        )
    pairs = place(find(sources), folder)
    journal = None if is_url(folder) else _journal(folder)
    if resume and journal:
        journal.read()
    arguments |= {"timeout": timeout, "memory_limit": memory_limit}
    planned = []
    for source, target in pairs:
        own = {**arguments, "external": external, **(arguments_of(source) if arguments_of else {})}
        beside = bool(own.pop("external"))
        known = journal.records.get(os.path.relpath(target, folder)) if journal else None
        planned.append(Job(source, target, own, beside, known=known))
    if journal:
        journal.start()

    def keep(outcome: Outcome) -> None:
        if journal is None:
            return
        name = os.path.relpath(str(outcome.output), folder)
        if outcome.record is None:
            journal.forget(name)
        elif not outcome.cached:
            journal.add({**outcome.record, "source": outcome.source, "output": name})

    try:
        return run(
            planned, executor=executor, jobs=jobs, fail_fast=fail_fast, timeout=timeout, memory_limit=memory_limit,
            watcher=watcher, keep=keep,
        )  # fmt: skip
    finally:
        if journal:
            journal.finish()


def _journal(folder: str) -> Journal:
    """Make the folder of the results."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be made: {error.strerror}") from error
    return Journal(Path(folder))


def run(
    planned: list[Job],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    timeout: float = 600.0,
    memory_limit: int | None = None,
    watcher: Watcher | None = None,
    keep: Callable[[Outcome], None] = lambda outcome: None,
) -> Summary:
    """Run jobs and return the totals; the arguments are those of `batch`."""
    here = [name for job in planned for name in (job.source, job.output or "") if name.startswith("memory:")]
    if here and executor is None:
        raise UsageError(
            f"{here[0]} is of this process alone, and models are migrated in others",
            hint="give an executor of threads",
        )
    watcher = watcher or Watcher()
    summary = Summary(models=len(planned))
    start = time.perf_counter()
    watcher.planned(len(planned))
    try:
        with (
            _submitter(executor, jobs or os.cpu_count() or 1, timeout, memory_limit) as submit,
            closing(_outcomes(planned, submit, watcher)) as outcomes,
        ):
            for outcome in outcomes:
                keep(outcome)
                summary.add(outcome)
                summary.seconds = time.perf_counter() - start
                watcher.ended(outcome)
                if fail_fast and not outcome.done:
                    return summary
        summary.complete = True
        return summary
    finally:
        watcher.finished(summary)


Submit = Callable[[Job], "Future[Outcome]"]


@contextmanager
def _submitter(
    executor: Executor | None, jobs: int, timeout: float, memory_limit: int | None
) -> Iterator[_Submitter]:
    if executor is not None:
        yield _Submitter(lambda job: executor.submit(run_job, _anywhere(job)), retries=False)
        return
    if memory_limit is None:
        memory_limit = (Limits().memory or 0) // jobs or None
    pool = LocalPool(jobs, timeout=timeout, memory_limit=memory_limit)

    def submit(job: Job) -> Future[Outcome]:
        return pool.schedule(run_job, job, timeout=timeout * _STAGES if job.isolated else timeout)

    try:
        yield _Submitter(submit, retries=True)
    finally:
        pool.shutdown(cancel_futures=True)  # every job has ended, or the batch stops at once


def _anywhere(job: Job) -> Job:
    """Return a job for a worker whose working folder may be another."""
    arguments = dict(job.arguments)
    if arguments.get("input_data") is not None:
        arguments["input_data"] = os.path.abspath(arguments["input_data"])
    output = None if job.output is None else _absolute(job.output)
    return replace(job, source=_absolute(job.source), output=output, arguments=arguments)


def _absolute(name: str) -> str:
    return name if is_url(name) else os.path.abspath(name)


class _Submitter:
    """Submits jobs to an executor.

    With `retries`, a job whose worker ended, or took too long, is run once more with its native stages in child
    processes of their own.
    """

    def __init__(self, submit: Submit, *, retries: bool) -> None:
        self._submit = submit
        self.retries = retries

    def __call__(self, job: Job) -> Future[Outcome]:
        try:
            return self._submit(job)
        except Exception as error:  # the executor is broken, or was shut down
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


def _outcomes(planned: list[Job], submit: _Submitter, watcher: Watcher) -> Generator[Outcome, None, None]:
    """Run jobs and yield their outcomes in the order in which they end."""
    waiting = deque(replace(job, isolated=not submit.retries) for job in planned)
    pending: dict[Future[Outcome], Job] = {}
    running: set[Future[Outcome]] = set()
    try:
        while waiting or pending:
            while waiting and len(pending) < _WINDOW:
                job = waiting.popleft()
                pending[submit(job)] = job
            wait(pending, _TICK, FIRST_COMPLETED)
            done = []
            for future in pending:
                if future.done():  # also when it was cancelled before it began, which `wait` does not see
                    done.append(future)
                elif future not in running and future.running():
                    running.add(future)
                    watcher.started(pending[future])
            for future in done:
                job = pending.pop(future)
                running.discard(future)
                outcome = submit.outcome(job, future)
                if outcome is None:
                    waiting.appendleft(replace(job, isolated=True))
                else:
                    yield outcome
    finally:
        for future in pending:
            future.cancel()
