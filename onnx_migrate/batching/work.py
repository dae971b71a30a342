"""What a worker does with a job."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from onnx_migrate import files
from onnx_migrate.batching.job import (
    FAILED,
    INVALID,
    MIGRATED,
    NOT_VERIFIED,
    REFUSED,
    UNCHANGED,
    Job,
    Outcome,
)
from onnx_migrate.batching.journal import content, key, whole, written
from onnx_migrate.errors import InvalidModel, MigrateError, SaveError
from onnx_migrate.messages import collected_remarks, remark
from onnx_migrate.migration import Migration, migrate
from onnx_migrate.model.model import Model
from onnx_migrate.report.data import ReportData
from onnx_migrate.report.failure import Failure, exit_code
from onnx_migrate.report.json_form import SCHEMA_VERSION
from onnx_migrate.safe_open.transfers import seconds_for_transfers, transfers_within
from onnx_migrate.url import is_url
from onnx_migrate.verdicts import Kind, Verdict

__all__ = ["refused", "run_job"]


def run_job(job: Job) -> Outcome:
    """Migrate a job's model and return the outcome; raises no Exception.

    The result is written whole or not at all. If `job.known` records that the same content with the same options led
    to the file that exists, the model is not migrated again. A result with remarks has no record, so that --resume writes it
    again and tidies up.
    """
    start = time.perf_counter()
    try:
        with (
            collected_remarks() as remarks,
            transfers_within(job.arguments.get("timeout", seconds_for_transfers())),
        ):
            ended = _run(job)
    except MigrateError as error:
        return refused(job, error, time.perf_counter() - start)
    except MemoryError:
        full = MigrateError(
            "the memory limit was reached",
            code="out-of-memory",
            hint="--memory-limit allows more, --jobs fewer models at a time",
        )
        return refused(job, full, time.perf_counter() - start)
    except RecursionError:
        deep = MigrateError("the model is nested too deeply", code="too-deep")
        return refused(job, deep, time.perf_counter() - start)
    except Exception as bug:
        last = traceback.extract_tb(bug.__traceback__)[-1]
        reason = f"{type(bug).__name__}: {bug} ({os.path.basename(last.filename)}:{last.lineno})"
        return refused(job, MigrateError(reason, code="failed"), time.perf_counter() - start)
    seconds = time.perf_counter() - start
    return Outcome(
        job.source,
        job.output,
        ended.kind,
        seconds=seconds,
        cached=ended.cached,
        report=ended.report,
        record=None if remarks else ended.record,
        verification=ended.verification,
        doubt=ended.doubt,
        remarks=tuple(remarks),
    )


def refused(job: Job, error: MigrateError, seconds: float = 0.0) -> Outcome:
    """Return the outcome of a job that ended with an error."""
    kind = REFUSED if exit_code(error) in (1, 2) and error.code not in _FAILURES else FAILED
    if isinstance(error, InvalidModel):
        kind = INVALID
    report = Failure.of(job.source, error)
    return Outcome(job.source, job.output, kind, error.code, str(error), seconds, report=report)


_FAILURES = (
    "failed",
    "crashed",
    "worker-lost",
    "timed-out",
    "out-of-memory",
    "cannot-write",
    "pass-failed",
    "adapter-failed",
)
"""Codes of failures that need not be the model's fault: the outcome is "failed", not "refused"."""


@dataclass(frozen=True)
class _Ended:
    kind: str
    report: ReportData | None
    record: Mapping[str, Any] | None = None
    cached: bool = False
    verification: str = ""
    doubt: str = ""

    @classmethod
    def of(cls, job: Job, migration: Migration, kind: str, record: Mapping[str, Any] | None = None) -> _Ended:
        """Describe a migration that was done."""
        flags = [*job.flags]
        flags += ["--save-as-external-data"] if job.external else []
        flags += ["--in-place"] if job.in_place else ["--check"] if job.output is None else []
        report = migration.report.saved(None if job.in_place else job.output, *flags)
        return cls(kind, report, record, False, *_status(migration.report.verification))


def _status(verdict: Verdict | None) -> tuple[str, str]:
    """Return what is known of a result with this verdict, and why it is unverified ("" if it is not)."""
    if verdict is None:
        return NOT_VERIFIED, ""
    return verdict.kind.value, verdict.reason if verdict.kind is Kind.UNVERIFIED else ""


def _run(job: Job) -> _Ended:
    settings = digests = None
    elsewhere = job.output is not None and is_url(job.output)
    if job.output is not None and not elsewhere:
        settings = key(job.arguments, external=job.external)
    if job.output is None or job.in_place:
        return _check_or_replace(job)
    if elsewhere or os.path.isdir(job.output):
        files.check_target(job.output)
    original = files.load(job.source)
    if settings is not None:
        digests = content(original)
        known = job.known or {}
        if (
            known.get("content") == digests
            and known.get("key") == settings
            and whole(job.output, known["written"])
            and "verification" in known  # a record of an older version has no such key
        ):
            return _Ended(known["outcome"], None, known, True, known["verification"], known["doubt"])
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
    kind = migration.report.outcome
    record = None
    verification, doubt = _status(migration.report.verification)
    if settings is not None:
        try:
            names = written(job.output)
        except OSError as error:  # the model is written all the same
            reason = error.strerror or error
            remark(f"{job.output} is written, but not recorded, so that --resume migrates it again: {reason}")
            return _Ended.of(job, migration, kind)
        record = {
            "schema_version": SCHEMA_VERSION,
            "source": job.source,
            "content": digests,
            "key": settings,
            "outcome": kind,
            "verification": verification,
            "doubt": doubt,
            "written": names,
        }
    return _Ended.of(job, migration, kind, record)


def _check_or_replace(job: Job) -> _Ended:
    """Migrate without an output, for the outcome alone, or over the source if that changes it."""
    if job.output is not None:
        files.check_target(job.output, source=job.source, in_place=True)
    migration = _migrate(job, job.source)
    if migration.same_as_original():
        return _Ended.of(job, migration, UNCHANGED)
    if job.output is not None:
        migration = _saved(job, migration)
    return _Ended.of(job, migration, MIGRATED)


def _saved(job: Job, migration: Migration) -> Migration:
    """Write the result, and return it with a report that has the sizes of the files. Raises what `Migration.save` does."""
    report = migration.report

    @contextmanager
    def sized(size: int) -> Iterator[None]:
        nonlocal report
        report = report.written(migration.original.file_bytes, size)
        yield

    assert job.output is not None
    migration.save(job.output, external=job.external, in_place=job.in_place, beside=sized)
    return replace(migration, report=report)


def _migrate(job: Job, source: str | Model) -> Migration:
    return migrate(source, **{**job.arguments, "isolated": job.isolated})
