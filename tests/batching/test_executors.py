"""What becomes of jobs that an executor refuses, loses or stops."""

from __future__ import annotations

import os
import re
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from onnx_migrate.batching.executors import Submitter, submitting
from onnx_migrate.batching.job import FAILED, MIGRATED, Job, Outcome
from onnx_migrate.batching.pool import WorkerEndedError
from onnx_migrate.isolate import Crashed

JOB = Job("in.onnx", "out.onnx", {"input_data": "x.npz"}, isolated=False)


def ended(error: Exception) -> Future[Outcome]:
    future: Future[Outcome] = Future()
    future.set_exception(error)
    return future


LOST: list[tuple[Exception, str, str]] = [
    (TimeoutError(), "timed-out", "--timeout"),
    (WorkerEndedError(Crashed("SIGSEGV", "noise\nlast words\n")), "crashed", r"\(SIGSEGV\): last words"),
    (OSError("the machine has gone"), "worker-lost", "OSError: the machine has gone"),
]


@pytest.mark.parametrize(("error", "code", "reason"), LOST, ids=[code for _, code, _ in LOST])
def test_a_lost_job_is_run_once_more_where_workers_are_replaced(
    error: Exception, code: str, reason: str
) -> None:
    submit = Submitter(lambda job: ended(error), retries=True)
    again = Job(JOB.source, JOB.output, isolated=True)

    assert submit.outcome(JOB, submit(JOB)) is None
    last = submit.outcome(again, submit(again))
    once = Submitter(lambda job: ended(error), retries=False).outcome(JOB, ended(error))

    for outcome in (last, once):
        assert outcome is not None
        assert (outcome.kind, outcome.code) == (FAILED, code)
        assert re.search(reason, outcome.reason)


class Recorder(Executor):
    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.jobs.extend(args)
        future: Future[Any] = Future()
        future.set_result(Outcome("elsewhere", None, MIGRATED))
        return future


def test_other_executors_get_absolute_paths_and_outcomes_keep_the_given_ones() -> None:
    recorder = Recorder()
    with submitting(recorder, 1, 5.0, None) as submit:
        outcome = submit.outcome(JOB, submit(JOB))

    (sent,) = recorder.jobs
    assert (sent.source, sent.output) == (os.path.abspath("in.onnx"), os.path.abspath("out.onnx"))
    assert sent.arguments["input_data"] == os.path.abspath("x.npz")
    assert outcome is not None
    assert (outcome.source, outcome.output) == ("in.onnx", "out.onnx")


def test_an_executor_that_does_not_accept_a_job_loses_it() -> None:
    class Closed(Recorder):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise RuntimeError("closed")

    with submitting(Closed(), 1, 5.0, None) as submit:
        outcome = submit.outcome(JOB, submit(JOB))

    assert outcome is not None
    assert (outcome.code, "RuntimeError: closed" in outcome.reason) == ("worker-lost", True)
