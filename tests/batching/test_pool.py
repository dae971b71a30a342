"""Workers of this machine: they are replaced, stopped at once, and lose no future."""

from __future__ import annotations

import math
import os
import signal
import time
from concurrent.futures import CancelledError
from typing import Any

import pytest

from onnx_migrate.batching import pool as pool_module
from onnx_migrate.batching.pool import LocalPool, WorkerEndedError
from onnx_migrate.process import Worker
from onnx_migrate.process import workers as workers_module


def test_a_worker_takes_many_calls_and_is_replaced_when_it_ends() -> None:
    with LocalPool(1) as pool:
        first, second = (pool.schedule(os.getpid).result() for _ in range(2))
        crash = pool.schedule(os.kill, first, signal.SIGSEGV)
        with pytest.raises(WorkerEndedError, match="SIGSEGV"):
            crash.result()
        third = pool.schedule(os.getpid).result()

    assert first == second != third


def test_a_call_that_takes_too_long_ends_alone() -> None:
    with LocalPool(2) as pool:
        slow = pool.schedule(time.sleep, 60, timeout=0.5)
        quick = [pool.schedule(math.sqrt, value) for value in (1.0, 4.0)]

        assert [future.result() for future in quick] == [1.0, 2.0]
        with pytest.raises(TimeoutError, match=r"timed out after 0\.5 s"):
            slow.result()
        assert pool.schedule(math.sqrt, 9.0).result() == 3.0


def test_how_long_a_call_took_that_ended_badly() -> None:
    with LocalPool(1) as pool:
        slow, crash = pool.schedule(time.sleep, 60, timeout=0.5), pool.schedule(os.abort)
        for future, least in ((slow, 0.5), (crash, 0.0)):
            assert least <= getattr(future.exception(), "spent", -1.0) < 20


def test_a_call_is_made_in_this_thread_as_the_interpreter_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    with LocalPool(1) as pool:
        monkeypatch.setattr(pool._threads, "submit", refuse)
        assert pool.schedule(math.sqrt, 4.0).result() == 2.0
        with pytest.raises(RuntimeError, match="ValueError"):
            pool.schedule(math.sqrt, -1.0).result()
    with pytest.raises(RuntimeError, match="interpreter shutdown"):
        pool.schedule(math.sqrt, 4.0)


def test_what_a_call_raises_and_what_does_not_pickle_is_of_its_future() -> None:
    with LocalPool(1) as pool:
        with pytest.raises(
            RuntimeError, match=r"ValueError: (math domain error|expected a nonnegative input)"
        ):
            pool.schedule(math.sqrt, -1.0).result()
        with pytest.raises(Exception, match="pickle"):
            pool.schedule(math.sqrt, lambda: 1).result()
        assert pool.schedule(math.sqrt, 4.0).result() == 2.0


def test_shutdown_stops_at_once() -> None:
    pool = LocalPool(1)
    running, waiting = pool.schedule(time.sleep, 60), pool.schedule(time.sleep, 60)
    while not running.running():
        time.sleep(0.01)
    start = time.monotonic()

    pool.shutdown(at_once=True)

    assert time.monotonic() - start < 20
    with pytest.raises(WorkerEndedError):
        running.result(0)
    with pytest.raises(CancelledError):
        waiting.result(0)
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.schedule(os.getpid)


def test_workers_that_never_start_fail_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnx_migrate.process.worker.BOOT", "raise SystemExit('no room for a thread')")
    with LocalPool(1) as pool:
        futures = [pool.schedule(os.getpid) for _ in range(2)]
        for future in futures:
            with pytest.raises(RuntimeError, match=r"end as they start: .*: no room for a thread"):
                future.result(20)
        with pytest.raises(RuntimeError, match="end as they start"):
            pool.schedule(os.getpid)


def test_workers_start_only_for_work(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Worker] = []

    class Counted(Worker):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            started.append(self)

    monkeypatch.setattr(workers_module, "Worker", Counted)
    with LocalPool(8) as pool:
        assert pool.schedule(math.sqrt, 4.0).result() == 2.0
    assert len(started) == 1
    assert not started[0].alive


@pytest.mark.parametrize(
    ("given", "jobs", "threads"), [("", 1, "6"), ("", 4, "1"), ("", 9, "1"), ("5", 4, "5")]
)
def test_workers_divide_the_cores_unless_told_how_many_threads(
    monkeypatch: pytest.MonkeyPatch, given: str, jobs: int, threads: str
) -> None:
    monkeypatch.setattr(pool_module.os, "cpu_count", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    with LocalPool(jobs) as pool:
        assert pool.schedule(os.getenv, "OMP_NUM_THREADS").result() == threads
