"""What becomes of jobs whose worker ends, takes too long, or is lost."""

from __future__ import annotations

import re
from concurrent.futures import Future

import pytest

from onnx_migrate.batching.job import FAILED, Job, Outcome
from onnx_migrate.batching.pool import WorkerEndedError
from onnx_migrate.batching.submitter import Submitter
from onnx_migrate.process import Crashed

JOB = Job("in.onnx", "out.onnx", isolated=False)


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
