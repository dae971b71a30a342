"""Jobs on somebody's executor run in child processes that are kept, replaced when they end, and ended when idle."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from onnx_migrate.batching import warm
from onnx_migrate.batching.job import FAILED, MIGRATED, Job
from onnx_migrate.batching.pool import LocalPool
from onnx_migrate.batching.warm import run_warm
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
    kept = warm._Kept()
    monkeypatch.setattr(warm, "_KEPT", kept)
    for name, text in (("a", ""), ("b", ""), ("crash", "crash"), ("slow", "30"), ("brief", "0.5")):
        model = onnx.parser.parse_model(SMALL)
        model.graph.doc_string = text
        onnx.save(model, tmp_path / f"{name}.onnx")
    yield tmp_path
    for waiting in kept._waiting.values():
        for pool, timer in waiting:
            timer.cancel()
            pool.shutdown()


def job(folder: Path, name: str) -> Job:
    arguments = {"passes": ["own:note"], "simplify": False, "verify": False}
    return Job(str(folder / f"{name}.onnx"), str(folder / f"{name}.out.onnx"), arguments)


def processes(folder: Path) -> list[str]:
    return (folder / "ledger").read_text().split()


def test_one_child_runs_one_job_after_another(folder: Path) -> None:
    assert [run_warm(job(folder, name), 60.0, None).kind for name in ("a", "b")] == [MIGRATED, MIGRATED]
    first, second = processes(folder)
    assert first == second != str(os.getpid())


def test_a_job_that_ends_its_child_fails_alone(folder: Path) -> None:
    outcome = run_warm(job(folder, "crash"), 60.0, None)

    assert (outcome.kind, outcome.code) == (FAILED, "crashed")
    assert run_warm(job(folder, "a"), 60.0, None).kind == MIGRATED


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
    monkeypatch.setattr(warm, "_IDLE_SECONDS", 0.2)
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


def test_the_pool_of_a_child_gives_it_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with LocalPool(1, threads_each=1) as pool:
        assert pool.submit(os.getenv, "OMP_NUM_THREADS").result() == "1"
