"""The work of a worker: it migrates the model of a job, writes the result, and returns the outcome."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from onnx_migrate import files
from onnx_migrate.batching.job import (
    FAILED,
    INVALID,
    MIGRATED,
    REFUSED,
    UNCHANGED,
    Job,
    Outcome,
)
from onnx_migrate.batching.journal import content, key, whole, written
from onnx_migrate.declared import current_names
from onnx_migrate.errors import InvalidModel, MigrateError, SaveError
from onnx_migrate.json_form import SCHEMA_VERSION
from onnx_migrate.messages import collected_remarks, remark
from onnx_migrate.migration import Migration, migrate
from onnx_migrate.model.model import Model
from onnx_migrate.model.validity.equations import equation_faults
from onnx_migrate.options import Options
from onnx_migrate.process import stoppable
from onnx_migrate.report.failure import Failure, exit_code
from onnx_migrate.safe_open.transfers import seconds_for_transfers, transfers_within
from onnx_migrate.url import is_url
from onnx_migrate.verify.prover import Prover
from onnx_migrate.verify.settings import Settings, libraries_of

__all__ = ["refused", "run_job"]

_LEAST = 1e-3
"""Minimum time of a second attempt, in seconds."""


def run_job(job: Job) -> Outcome:
    """Migrate a job's model and return the outcome; raises no Exception.

    The result is written completely or not at all. If `job.known` records the same content, options and existing result,
    `run_job` skips the migration. The journal gets no record of three kinds of results, so --resume tries them again:

    - results with remarks
    - results of a best effort that left nodes unchanged
    - results whose verification took too long
    """
    start, timeout = time.perf_counter(), job.arguments.get("timeout", seconds_for_transfers())
    try:
        spent = min(job.spent, timeout - _LEAST)
        with stoppable(None, timeout, spent=spent), transfers_within(timeout):
            ended = _outcome(job)
    except MigrateError as error:  # the time is over
        ended = refused(job, error)
    return replace(ended, seconds=job.spent + time.perf_counter() - start)


def _outcome(job: Job) -> Outcome:
    """Return the outcome of a job; raises no Exception."""
    try:
        with collected_remarks() as remarks:
            ended = _run(job)
    except Exception as error:
        ended = refused(job, _told(error))
        tried = ended.kind == INVALID and not current_names(Options, job.arguments).get("require_valid")
        return _tried(job, ended) if tried else ended
    again = remarks or ended.left or ended.late
    return replace(ended, record=None if again else ended.record, remarks=tuple(remarks))


def _told(error: Exception) -> MigrateError:
    """Return an exception that ended a job as a MigrateError, which reports use."""
    if isinstance(error, MigrateError):
        return error
    if isinstance(error, MemoryError):
        return MigrateError(
            "the memory limit was reached",
            code="out-of-memory",
            hint="--memory-limit allows more, --jobs fewer models at a time",
        )
    if isinstance(error, RecursionError):
        return MigrateError("the model is nested too deeply", code="too-deep")
    last = traceback.extract_tb(error.__traceback__)[-1]
    reason = f"{type(error).__name__}: {error} ({os.path.basename(last.filename)}:{last.lineno})"
    return MigrateError(reason, code="failed")


def refused(job: Job, error: MigrateError) -> Outcome:
    """Return the outcome of a job that ended with an error."""
    kind = REFUSED if exit_code(error) in (1, 2) and error.code not in _FAILURES else FAILED
    if isinstance(error, InvalidModel):
        kind = INVALID
    report = Failure.of(job.source, error)
    return Outcome(job.source, job.output, kind, error.code, error.with_hint, report=report)


def _tried(job: Job, ended: Outcome) -> Outcome:
    """Return the outcome of an invalid model, with whether ONNX Runtime loads it in a child process."""
    options = Options(**current_names(Options, job.arguments))
    settings = Settings(limits=options.limits, libraries=libraries_of(options.ort_library))
    try:
        model = files.load(job.source)
        if next(equation_faults(model.proto), None) is not None:
            return ended  # ONNX Runtime calls onnx's inference, which does not end on some equations
        with Prover(settings) as prover:
            return replace(ended, loadable=prover.loads(model))
    except MigrateError as error:
        return replace(ended, remarks=(f"whether ONNX Runtime loads it is not known: {error}",))


_FAILURES = (
    "failed",
    "crashed",
    "worker-lost",
    "no-process",
    "timed-out",
    "out-of-memory",
    "cannot-write",
    "pass-failed",
    "adapter-failed",
)
"""Codes of failures that may not be the model's fault: the outcome is "failed", not "refused"."""


def _ended(job: Job, migration: Migration, kind: str) -> Outcome:
    """Return the outcome of a completed migration."""
    flags = [*job.flags]
    flags += ["--save-as-external-data"] if job.external else []
    flags += ["--in-place"] if job.in_place else ["--check"] if job.output is None else []
    report = migration.report.saved(None if job.in_place else job.output, *flags)
    return Outcome.of(job.source, job.output, kind, migration.viewed(report) if job.viewed else report)


def _run(job: Job) -> Outcome:
    settings = digests = None
    elsewhere = job.output is not None and is_url(job.output)
    if job.output is not None and not elsewhere:
        settings = key(job.arguments, external=job.external)
    if job.output is None or job.in_place:
        return _check_or_replace(job)
    # These targets fail before the model is loaded.
    if elsewhere or os.path.isdir(job.output):
        files.check_target(job.output)
    original = files.load(job.source)
    if settings is not None:
        digests = content(original)
        earlier = job.known or {}
        if (
            earlier.get("content") == digests
            and earlier.get("key") == settings
            and whole(job.output, earlier["written"])
            and "verification" in earlier  # a record of an older version has no such key
        ):
            return Outcome(
                job.source,
                job.output,
                earlier["outcome"],
                cached=True,
                record=earlier,
                verification=earlier["verification"],
                doubt=earlier["doubt"],
            )
    # A result must not overwrite weights that it refers to.
    files.check_not_source([job.output], original.origin)
    migration = _migrate(job, original)
    folder = "" if elsewhere else os.path.dirname(job.output)
    try:
        os.makedirs(folder or ".", exist_ok=True)
    except OSError as error:
        raise SaveError(
            f"the folder {folder} cannot be made: {error.strerror}", hint="give another folder"
        ) from error
    migration = _saved(job, migration)
    ended = _ended(job, migration, migration.report.outcome)
    if settings is None:
        return ended
    try:
        names = written(job.output)
    except OSError as error:  # the model is written all the same
        reason = error.strerror or error
        remark(f"{job.output} is written, but not recorded, so that --resume migrates it again: {reason}")
        return ended
    record = {
        "schema_version": SCHEMA_VERSION,
        "source": job.source,
        "content": digests,
        "key": settings,
        "outcome": ended.kind,
        "verification": ended.verification,
        "doubt": ended.doubt,
        "written": names,
    }
    return replace(ended, record=record)


def _check_or_replace(job: Job) -> Outcome:
    """Migrate without an output and return only the outcome, or replace the source if the migration changes it."""
    if job.output is not None:
        files.check_target(job.output, source=job.source, in_place=True)
    migration = _migrate(job, job.source)
    if migration.same_as_original():
        return _ended(job, migration, UNCHANGED)
    if job.output is not None:
        migration = _saved(job, migration)
    return _ended(job, migration, MIGRATED)


def _saved(job: Job, migration: Migration) -> Migration:
    """Write the result, and return it with a report that has the sizes of the files. Raises what `Migration.save` does."""
    report = migration.report

    @contextmanager
    def sized(size: int) -> Iterator[None]:
        nonlocal report
        # The sizes of the files are known only now, and the report states them.
        report = report.written(migration.original.file_bytes, size)
        yield

    assert job.output is not None
    migration.save(job.output, external=job.external, in_place=job.in_place, beside=sized)
    return replace(migration, report=report)


def _migrate(job: Job, source: str | Model) -> Migration:
    return migrate(source, **{**job.arguments, "isolated": job.isolated})
