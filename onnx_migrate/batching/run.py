"""Migrates many models in workers, so that a model that crashes or hangs does not affect the others."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx_migrate.batching.executors import Submitter, submitting
from onnx_migrate.batching.find import find, place
from onnx_migrate.batching.job import Job, Outcome, Summary
from onnx_migrate.batching.journal import Journal
from onnx_migrate.core_options import policy_of
from onnx_migrate.declared import check_names, current_names, declared
from onnx_migrate.errors import Cancelled, UsageError, require_onnxruntime
from onnx_migrate.files import check_target
from onnx_migrate.options import Options
from onnx_migrate.process import CancelToken
from onnx_migrate.url import is_url, resolve_file_url

__all__ = ["MODEL_SECONDS", "Watcher", "batch", "run_jobs"]

MODEL_SECONDS = 120.0
"""Default time limit of a model in seconds, for both attempts together: a hanging model must not delay a nightly run."""

_TICK = 0.2
"""Seconds between two checks which jobs have begun."""

_WINDOW = 1000
"""Maximum number of jobs that are submitted to the executor at a time."""


class Watcher:
    """Callbacks on the progress of a batch, which do nothing; a base class to override."""

    views = False
    """Whether the reports of outcomes contain the views of the results, which a page draws."""

    def placed(self, outputs: Iterable[str]) -> None:
        """Called once, before `planned`, with the paths of the results; an exception ends the batch."""

    def planned(self, total: int) -> None:
        """Called once, with the number of models, before the first begins."""

    def started(self, job: Job) -> None:
        """Called when a worker begins a model."""

    def waiting(self) -> None:
        """Called several times a second while models run."""

    def ended(self, outcome: Outcome) -> None:
        """Called when a model has ended, with any outcome."""

    def finished(self, summary: Summary) -> None:
        """Called once at the end, also after an interruption."""


def batch(
    sources: Iterable[str | os.PathLike[str]],
    out_dir: str | os.PathLike[str],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    resume: bool = False,
    allow_unverified: bool = False,
    external: bool = False,
    timeout: float = MODEL_SECONDS,
    memory_limit: int | None = None,
    watcher: Watcher | None = None,
    cancel: CancelToken | None = None,
    arguments_of: Callable[[str], Mapping[str, Any]] | None = None,
    **arguments: Any,
) -> Summary:
    """Migrate files, folders (their structure is kept) and glob patterns into `out_dir`.

    Args:
        sources: see `find`.
        out_dir: a folder for the results and the journal, which `batch` makes if needed. A URL has no journal.
        executor: any `concurrent.futures.Executor` whose workers have this package and see the same files. The default runs
            processes of this machine; a new process replaces one that a model ends.
        jobs: number of such processes, by default the number of processors.
        fail_fast: stop at the first model that is not migrated, or whose result is unverified.
        resume: skip a model that the journal lists with the same content, options and versions, and whose result is unchanged.
            It needs an `out_dir` on this machine.
        allow_unverified: let an unverified result count as a success in `Summary.ok`.
        external: write the weights of every result to a file beside it.
        timeout: seconds that a model may take. A model that takes three quarters of them, or crashes its process, gets one more
            attempt in the rest of the time. Then each native stage runs in a child process of its own.
        memory_limit: bytes of each process; by default all processes share three quarters of the machine's memory.
        watcher: called with the outcome of every model; the returned summary has only totals.
        cancel: give a threading.Event, or any object with the method `is_set`. Once it is set, `batch` ends the workers and
            raises Cancelled. The results until then are complete, and in the journal.
        arguments_of: takes the path of a model and returns arguments of `migrate`, or `external`, for it. These arguments take
            precedence. `flags` are further flags of the command line in the report.
        arguments: as for `migrate`.

    Returns the totals. Raises Cancelled, UsageError if no model can be migrated at all, and TypeError for an argument that
    `migrate` does not have. An exception of `watcher` ends the workers, and then the batch.
    """
    arguments = current_names(Options, arguments)
    # A wrong argument must not fail once for each model.
    check_names("batch", arguments, [option.name for option in declared(Options)])
    folder = resolve_file_url(os.fspath(out_dir))
    if resume and is_url(folder):
        raise UsageError(
            f"{folder}: --resume needs a journal, which cannot be kept at a URL",
            hint="leave --resume out, or give a folder on this machine",
        )
    pairs = place(find(sources), folder)
    journal = None if is_url(folder) else _journal(folder)
    if resume and journal:
        # Without --resume, the journal starts anew.
        journal.read()
    arguments |= {"timeout": timeout, "memory_limit": memory_limit}
    planned = []
    for source, target in pairs:
        own = {
            **arguments,
            "external": external,
            **(current_names(Options, arguments_of(source)) if arguments_of else {}),
        }
        beside, flags = bool(own.pop("external")), tuple(own.pop("flags", ()))
        record = journal.records.get(os.path.relpath(target, folder)) if journal else None
        planned.append(Job(source, target, own, beside, known=record, flags=flags))
    if journal:
        journal.rewrite()

    def keep(outcome: Outcome) -> None:
        if journal is None:
            return
        name = os.path.relpath(str(outcome.output), folder)
        if outcome.record is None:
            journal.forget(name)
        elif not outcome.cached:
            journal.add({**outcome.record, "source": outcome.source, "output": name})

    try:
        return run_jobs(
            planned, executor=executor, jobs=jobs, fail_fast=fail_fast, allow_unverified=allow_unverified, timeout=timeout,
            memory_limit=memory_limit, watcher=watcher, cancel=cancel, keep=keep,
        )  # fmt: skip
    finally:
        if journal:
            journal.rewrite()


def _journal(folder: str) -> Journal:
    """Return the journal of a folder of results, which is made if it does not exist. Raises UsageError and SaveError."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {folder} cannot be made: {error.strerror}",
            hint="give another folder for the results",
        ) from error
    journal = Journal(Path(folder))
    check_target(journal.path)
    return journal


def run_jobs(
    planned: list[Job],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    allow_unverified: bool = False,
    timeout: float = MODEL_SECONDS,
    memory_limit: int | None = None,
    watcher: Watcher | None = None,
    cancel: CancelToken | None = None,
    keep: Callable[[Outcome], None] = lambda outcome: None,
) -> Summary:
    """Run jobs and return the totals; `keep` is called with each outcome, the other arguments are those of `batch`.

    Raises UsageError for an object in this process's memory that other processes would have to read. Raises it too if a job has
    to be verified and ONNX Runtime is not installed.
    """
    here = [name for job in planned for name in (job.source, job.output or "") if name.startswith("memory:")]
    if here and executor is None:
        raise UsageError(
            f"{here[0]} exists in this process only, but models are migrated in other processes",
            hint="give an executor that runs threads of this process",
        )
    if executor is None and any(policy_of(job.arguments.get("verify", True)) != "off" for job in planned):
        # The error must come once, and not from each worker.
        require_onnxruntime("the verification", "or leave it out: --verify=off")
    watcher = watcher or Watcher()
    if watcher.views:
        # Only the page of a batch needs drawings, which take time.
        planned = [replace(job, viewed=True) for job in planned]
    summary = Summary(models=len(planned), allow_unverified=allow_unverified)
    start = time.perf_counter()
    watcher.placed(job.output for job in planned if job.output is not None)
    watcher.planned(len(planned))
    try:
        with (
            submitting(executor, jobs or os.cpu_count() or 1, timeout, memory_limit) as submit,
            closing(_outcomes(planned, submit, watcher, cancel)) as outcomes,
        ):
            for outcome in outcomes:
                # The journal comes first, so that an interrupted run can be resumed after this model.
                keep(outcome)
                summary.add(outcome)
                summary.seconds = time.perf_counter() - start
                watcher.ended(outcome)
                if fail_fast and not outcome.succeeded(allow_unverified=allow_unverified):
                    return summary
        summary.complete = True
        return summary
    finally:
        watcher.finished(summary)


def _outcomes(
    planned: list[Job], submit: Submitter, watcher: Watcher, cancel: CancelToken | None
) -> Generator[Outcome, None, None]:
    """Run jobs and yield their outcomes in the order in which they end. Raises Cancelled."""
    waiting = deque(replace(job, isolated=not submit.retries) for job in planned)
    pending: dict[Future[Outcome], Job] = {}
    running: set[Future[Outcome]] = set()
    try:
        while waiting or pending:
            if cancel is not None and cancel.is_set():
                raise Cancelled("the batch was cancelled", hint="resume=True goes on from here")
            # Few jobs wait in the executor, so that a stop takes effect soon.
            while waiting and len(pending) < _WINDOW:
                job = waiting.popleft()
                pending[submit(job)] = job
            wait(pending, _TICK, FIRST_COMPLETED)
            watcher.waiting()
            ended = []
            for future in pending:
                if future.done():  # also if it was cancelled before it began, which `wait` does not report
                    ended.append(future)
                elif future not in running and future.running():
                    running.add(future)
                    watcher.started(pending[future])
            for future in ended:
                job = pending.pop(future)
                running.discard(future)
                outcome = submit.outcome(job, future)
                # The worker ended, and the model gets one more attempt.
                if outcome is None:
                    waiting.appendleft(submit.again(job, future))
                else:
                    yield outcome
    finally:
        for future in pending:
            # Jobs that have not begun must not run after the end.
            future.cancel()
