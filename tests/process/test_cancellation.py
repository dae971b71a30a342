"""A token stops what a call does: a child at once, other work at the next look. A listener follows it. Signals wait."""

from __future__ import annotations

import signal
import sys
import threading
import time

import pytest

from onnx_migrate import process
from onnx_migrate.errors import Cancelled, MigrateError
from onnx_migrate.process import Limits, Returned, Worker, deadline
from onnx_migrate.process.cancellation import Stopped, check_cancelled, check_stopped, stoppable
from onnx_migrate.process.progress import Progress, Reporter
from onnx_migrate.process.signals import blocked
from tests.support.skips import Elsewhere, skip_if


def later(token: threading.Event, seconds: float = 0.3) -> None:
    threading.Timer(seconds, token.set).start()


def test_a_child_that_runs_is_killed(module: str) -> None:
    token, start = threading.Event(), time.perf_counter()
    later(token)

    with Worker() as worker:
        with pytest.raises(Cancelled) as caught, stoppable(token):
            worker.call(f"{module}:hang", seconds=60)
        assert not worker.alive

    assert caught.value.code == "cancelled"
    assert time.perf_counter() - start < 10


def test_no_other_child_is_started(module: str) -> None:
    token = threading.Event()
    token.set()
    with pytest.raises(Cancelled), stoppable(token):
        process.run(f"{module}:double", 2, limits=Limits(seconds=60))


def test_what_recovers_from_errors_does_not_recover_from_the_end() -> None:
    token = threading.Event()

    def stubborn() -> None:
        try:
            token.set()
            check_cancelled()
        except (Exception, MigrateError):
            pytest.fail("recovered")

    with pytest.raises(Cancelled), stoppable(token):
        stubborn()


def test_a_token_that_is_not_set_changes_nothing(module: str) -> None:
    for token in (None, threading.Event()):
        with stoppable(token):
            assert process.run(f"{module}:double", 2) == Returned(4)
    assert threading.active_count() < 20


def test_a_token_is_of_its_block_and_of_its_thread() -> None:
    token, seen = threading.Event(), []
    token.set()

    def other() -> None:
        check_cancelled()
        seen.append("went on")

    def start_and_join() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    with pytest.raises(Cancelled), stoppable(token):
        start_and_join()
    check_cancelled()

    assert seen == ["went on"]


def test_a_call_within_a_call_ends_by_the_token_of_the_outer_one() -> None:
    token = threading.Event()
    token.set()
    with pytest.raises(Cancelled), stoppable(token), stoppable(None):
        check_cancelled()


def test_the_error_that_is_carried_is_the_one_that_is_raised() -> None:
    with pytest.raises(ZeroDivisionError), stoppable(None):
        raise Stopped(ZeroDivisionError("mine"))


@skip_if(sys.platform == "win32", "threads watch there", Elsewhere.LINUX)
def test_no_thread_watches(module: str) -> None:
    token, threads = threading.Event(), threading.active_count()
    seen: list[int] = []

    with Worker() as worker, stoppable(token):
        worker.call("time:sleep", 0)
        threading.Timer(0.2, lambda: (seen.append(threading.active_count()), token.set())).start()
        with pytest.raises(Stopped):
            worker.call(f"{module}:hang", seconds=60)
        token.clear()

    assert seen == [threads + 1]  # that of the timer


def test_own_work_ends_at_the_deadline_and_names_its_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "LEAST_SECONDS", 0.0)

    def endless() -> None:
        while True:
            check_stopped("lift")

    with (
        pytest.raises(MigrateError, match=r"timed out after 0\.1 s, in the stage 'lift'") as caught,
        stoppable(None, 0.1),
    ):
        endless()
    assert caught.value.code == "timed-out"


@skip_if(sys.platform == "win32", "no signal masks there", Elsewhere.LINUX)
def test_a_signal_is_delivered_when_the_block_ends() -> None:
    came: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: came.append(number))
    try:
        with blocked(signal.SIGUSR1):
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)  # other threads do not hold it
            assert came == []
        assert came == [signal.SIGUSR1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def told(*details: str) -> list[Progress]:
    seen: list[Progress] = []
    reporter = Reporter(seen.append, {"load": "reading the model", "verify": "comparing"})
    reporter.stage("verify")
    for detail in details:
        reporter.within(detail)
    return seen


@pytest.mark.parametrize(
    ("detail", "done", "total", "fraction"),
    [
        ("input 2 of 3, run 5 of 8", 4, 8, 0.5),
        ("input 1, run 1", 0, None, None),
        ("tract 0.21", None, None, None),
    ],
)
def test_a_run_is_counted_as_done_when_the_next_begins(
    detail: str, done: int | None, total: int | None, fraction: float | None
) -> None:
    first, event = told(detail)

    assert (first.detail, str(first)) == ("", "comparing")
    assert (event.stage, event.number, event.stages, event.detail) == ("verify", 2, 2, detail)
    assert (event.done, event.total, event.fraction) == (done, total, fraction)
    assert (event.title, str(event)) == ("comparing", f"comparing: {detail}")
    assert 0 <= first.seconds <= event.seconds


def test_what_a_listener_raises_is_raised_by_the_call() -> None:
    def listener(event: Progress) -> None:
        raise RuntimeError(event.stage)

    with pytest.raises(RuntimeError, match="load"), stoppable(None):
        Reporter(listener, {"load": "reading the model"}).stage("load")


def test_a_cancelled_call_tells_nothing_more() -> None:
    token, seen = threading.Event(), []
    token.set()

    with pytest.raises(Cancelled), stoppable(token):
        Reporter(seen.append, {"load": "reading the model"}).stage("load")

    assert seen == []
