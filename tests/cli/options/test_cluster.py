"""`--scheduler`: a real scheduler and two workers on loopback, one of which is killed during the batch."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cli.running import FAST, Run, snapshot, wait_for
from tests.support.skips import Elsewhere, import_or_skip, skip_if

LEDGER = """
import os, time
from pathlib import Path
from onnx_migrate.batching import executors

HERE = Path(__file__).parent
TURN = os.environ["TURN"]
run_warm = executors.run_warm

def note(word, job):
    with open(HERE / "ledger", "a") as file:
        file.write(f"{word} {os.getpid()} {Path(job.source).name}\\n")

def wait_if_doomed(job):
    if (HERE / "doomed").exists() and (HERE / "doomed").read_text() == str(os.getpid()):
        note("waiting", job)
        time.sleep(600)

def noted(job, *limits):
    note("start", job)
    if TURN == "before":
        wait_if_doomed(job)
    outcome = run_warm(job, *limits)
    time.sleep(0.1)
    if TURN == "after":
        wait_if_doomed(job)
    note("end", job)
    return outcome

executors.run_warm = noted
"""
"""Loaded by each worker: jobs write when they start and end. One of the worker that is doomed stays where it is,
before it has begun, or when its result is written and nobody knows of it."""


class Cluster:
    """A scheduler and two workers, each a process with a working folder of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self._children: list[subprocess.Popen[str]] = []
        self._file = folder / "scheduler.json"
        common = ("--host", "127.0.0.1", "--no-dashboard")
        self.scheduler = self._start("dask_scheduler", "--port", "0", *common)
        wait_for(lambda: "".join(lines_of(self._file)).endswith("}"))
        self.address = json.loads(self._file.read_text(encoding="utf-8"))["address"]
        common += ("--nthreads", "1", "--no-nanny", "--preload", "ledger_of_cluster")
        self.workers = [self._start("dask_worker", *common) for _ in range(2)]

    def _start(self, module: str, *args: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *args]
        return self.start([*command, "--scheduler-file", str(self._file)], self._folder, self._environment)

    def start(self, command: list[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
        """Start a process that ends with the test."""
        with (self._folder / "stderr").open("a") as log:
            child = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=log, text=True
            )
        self._children.append(child)
        return child

    def stop(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()


@pytest.fixture(params=["before", "after"])
def cluster(request: pytest.FixtureRequest, tmp_path: Path, environment: dict[str, str]) -> Iterator[Cluster]:
    import_or_skip("distributed", Elsewhere.INSTALLED)
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "ledger_of_cluster.py").write_text(LEDGER, encoding="utf-8")
    path = f"{environment['PYTHONPATH']}{os.pathsep}{tmp_path / 'cluster'}"
    found = Cluster(tmp_path / "cluster", {**environment, "PYTHONPATH": path, "TURN": request.param})
    yield found
    found.stop()


def many(folder: Path, count: int) -> None:
    (folder / "many").mkdir()
    for index in range(count):
        shutil.copy(folder / "small.onnx", folder / "many" / f"{index:02}.onnx")
    (folder / "many" / "text.onnx").write_text("hello", encoding="utf-8")


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


ARGS = ["batch", "many", *FAST, "--out-dir"]


@pytest.fixture
def batch(
    cluster: Cluster, folder: Path, command: list[str], environment: dict[str, str]
) -> subprocess.Popen[str]:
    """A batch of 16 models, and a file that is none, on the cluster."""
    many(folder, 16)
    args = [*ARGS, "out", "--scheduler", cluster.address, "--json-lines", "log.jsonl"]
    return cluster.start([*command, *args], folder, environment)


@pytest.mark.long
def test_a_killed_worker_loses_no_model_and_repeats_none(
    cluster: Cluster, batch: subprocess.Popen[str], folder: Path, process: Run, request: pytest.FixtureRequest
) -> None:
    (doomed, other), place = cluster.workers, folder.parent / "cluster"

    def entries(word: str) -> list[tuple[int, str]]:
        found = [line.split() for line in lines_of(place / "ledger")]
        return [(int(pid), name) for event, pid, name in found if event == word]

    wait_for(lambda: len([name for pid, name in entries("end") if pid == doomed.pid]) >= 2)
    (place / "doomed").write_text(str(doomed.pid), encoding="utf-8")
    wait_for(lambda: entries("waiting"))
    ((_, waiting),) = entries("waiting")
    assert (folder / "out" / waiting).exists() == (request.node.callspec.params["cluster"] == "after")
    ended_before = len(entries("end"))
    wait_for(
        lambda: len(lines_of(folder / "log.jsonl")) >= ended_before
    )  # so that only the waiting model is lost with the worker
    doomed.kill()

    assert batch.wait(60) == 1
    names = sorted(path.name for path in (folder / "many").iterdir())
    assert sorted(name for _, name in entries("start")) == sorted([*names, waiting])
    assert [pid for pid, name in entries("start") if name == waiting] == [doomed.pid, other.pid]
    assert sorted(name for _, name in entries("end")) == names
    *log, totals = map(json.loads, lines_of(folder / "log.jsonl"))
    assert sorted(entry["model"] for entry in log) == [f"many/{name}" for name in names]
    assert totals["outcomes"] == {"migrated": 16, "unchanged": 0, "refused": 0, "invalid": 0, "failed": 1}
    assert process(*ARGS, "local", "--jobs", "1").code == 1
    assert snapshot(folder / "out") == snapshot(folder / "local")


@pytest.mark.long
@pytest.mark.parametrize("cluster", ["before"], indirect=True)
def test_a_lost_scheduler_ends_the_batch(
    cluster: Cluster, batch: subprocess.Popen[str], folder: Path, process: Run
) -> None:
    wait_for(lambda: len(lines_of(folder / "log.jsonl")) >= 4)
    cluster.scheduler.kill()

    assert batch.wait(60) == 1
    *log, totals = map(json.loads, lines_of(folder / "log.jsonl"))
    assert (len(log), totals["ended"]) == (17, 17)
    assert "worker-lost" in {entry["error"]["code"] for entry in log if entry["outcome"] == "failed"}
    assert process(*ARGS, "out", "--resume", "--jobs", "1").code == 1
    assert process(*ARGS, "local", "--jobs", "1").code == 1
    assert snapshot(folder / "out") == snapshot(folder / "local")


@skip_if(find_spec("distributed") is None, "could not import 'distributed'", Elsewhere.INSTALLED)
def test_an_unreachable_scheduler_is_one_line(process: Run, folder: Path) -> None:
    ended = process("batch", "small.onnx", "--out-dir", "out", "--scheduler", "nonsense://127.0.0.1:9")

    assert (ended.code, ended.out) == (2, "")
    assert "no Dask scheduler answers" in ended.err.splitlines()[-1]


def test_a_missing_library_is_one_line(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    ended = cli("batch", "small.onnx", "--out-dir", "out", "--scheduler", "tcp://127.0.0.1:8786")

    assert ended.code == 2
    assert "pip install 'onnx-migrate[dask]'" in ended.err
