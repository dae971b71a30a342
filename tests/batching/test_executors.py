"""Jobs on somebody's executor run in child processes that are kept, replaced when they end, and ended when idle."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from onnx_migrate.batching import executors
from onnx_migrate.batching.executors import Submitter, run_warm, submitting
from onnx_migrate.batching.job import FAILED, MIGRATED, Job, Outcome
from onnx_migrate.batching.pool import WorkerEndedError
from onnx_migrate.batching.work import run_job
from onnx_migrate.process import Crashed, Workers
from tests.cli.running import SMALL

PASS = """
import os, time
import onnx
def note(model: onnx.ModelProto) -> onnx.ModelProto:
    with open({ledger!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    if model.graph.doc_string == "crash":
        os.abort()
    time.sleep(float(model.graph.doc_string or 0))
    return model
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a pass that writes the process in which it runs to a file; no child is left over."""
    import onnx

    (tmp_path / "own.py").write_text(PASS.format(ledger=str(tmp_path / "ledger")))
    monkeypatch.syspath_prepend(str(tmp_path))
    kept = Workers(idle=60.0)
    for name, text in (("a", ""), ("b", ""), ("crash", "crash"), ("slow", "30"), ("brief", "0.5")):
        model = onnx.parser.parse_model(SMALL)
        model.graph.doc_string = text
        onnx.save(model, tmp_path / f"{name}.onnx")
    monkeypatch.setattr(executors, "current_workers", lambda: kept)
    yield tmp_path
    kept.close()


def job(folder: Path, name: str) -> Job:
    arguments = {"passes": ["own:note"], "simplify": False, "verify": False}
    return Job(str(folder / f"{name}.onnx"), str(folder / f"{name}.out.onnx"), arguments)


def processes(folder: Path) -> list[str]:
    return (folder / "ledger").read_text().split()


@pytest.mark.long
def test_one_child_runs_one_job_after_another(folder: Path) -> None:
    assert [run_warm(job(folder, name), 60.0, None).kind for name in ("a", "b")] == [MIGRATED, MIGRATED]
    first, second = processes(folder)
    assert first == second != str(os.getpid())


@pytest.mark.long
def test_a_job_that_ends_its_child_fails_alone(folder: Path) -> None:
    outcome = run_warm(job(folder, "crash"), 60.0, None)

    assert (outcome.kind, outcome.code) == (FAILED, "crashed")
    assert run_warm(job(folder, "a"), 60.0, None).kind == MIGRATED


@pytest.mark.long
def test_a_job_that_takes_too_long_is_stopped(folder: Path) -> None:
    start = time.monotonic()
    outcome = run_warm(job(folder, "slow"), 1.0, None)

    assert (outcome.kind, outcome.code) == (FAILED, "timed-out")
    assert time.monotonic() - start < 20


def test_jobs_at_the_same_time_have_children_of_their_own(folder: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        ended = list(threads.map(lambda _: run_warm(job(folder, "brief"), 60.0, None), range(2)))

    assert [outcome.kind for outcome in ended] == [MIGRATED, MIGRATED]
    assert len(set(processes(folder))) == 2


def test_a_child_without_work_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Workers(idle=0.2)
    monkeypatch.setattr(executors, "current_workers", lambda: kept)
    run_warm(job(folder, "a"), 60.0, None)
    child = int(processes(folder)[0])
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        pytest.fail("the child is kept")
    assert run_warm(job(folder, "b"), 60.0, None).kind == MIGRATED


JOB = Job("in.onnx", "out.onnx", {"input_data": "x.npz"}, isolated=False)


class Recorder(Executor):
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls.append((fn, *args))
        future: Future[Any] = Future()
        there = args[0].source
        future.set_result(Outcome(there, None, MIGRATED, reason=f"{there} is truncated"))
        return future


def test_other_executors_get_absolute_paths_and_outcomes_keep_the_given_ones() -> None:
    recorder = Recorder()
    with submitting(recorder, 1, 5.0, None) as submit:
        outcome = submit.outcome(JOB, submit(JOB))

    ((function, sent, *limits),) = recorder.calls
    assert (function, limits) == (run_warm, [5.0, None])
    assert (sent.source, sent.output) == (os.path.abspath("in.onnx"), os.path.abspath("out.onnx"))
    assert sent.arguments["input_data"] == os.path.abspath("x.npz")
    assert outcome is not None
    assert (outcome.source, outcome.output, outcome.reason) == ("in.onnx", "out.onnx", "in.onnx is truncated")


def test_a_model_in_memory_is_migrated_in_this_process() -> None:
    recorder = Recorder()
    with submitting(recorder, 1, 5.0, None) as submit:
        submit(Job("memory://in.onnx", "memory://out.onnx", isolated=False))

    assert recorder.calls == [(run_job, Job("memory://in.onnx", "memory://out.onnx", isolated=True))]


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


@pytest.mark.parametrize(
    ("isolated", "spent", "seconds"),
    [(False, 0.0, 75.0), (True, 75.0, 40.0), (True, 1.0, 114.0), (True, 100.0, 15.0)],
)
def test_both_attempts_share_the_time_of_a_model(isolated: bool, spent: float, seconds: float) -> None:
    attempt = Job("in.onnx", None, isolated=isolated, spent=spent)
    assert executors._seconds(attempt, 100.0) == pytest.approx(seconds, abs=0.1)


def test_the_second_attempt_knows_what_the_first_took() -> None:
    submit = Submitter(lambda job: ended(WorkerEndedError(Crashed("SIGSEGV"), spent=3.5)), retries=True)
    again = submit.again(JOB, submit(JOB))
    assert (again.isolated, again.spent, again.source) == (True, 3.5, JOB.source)
