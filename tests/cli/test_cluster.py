"""`--scheduler`: a real scheduler and two workers on loopback, one of which is killed on the way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import FAST, Run, snapshot

pytest.importorskip("distributed")

FIXTURES = Path(__file__).parents[2] / "fixtures"

SLOW = """
import time
import onnx

def slow(model: onnx.ModelProto) -> None:
    time.sleep(0.3)
"""


class Cluster:
    """A scheduler and two workers, each a process with a working folder of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._folder, self._environment = folder, environment
        self._file = folder / "scheduler.json"
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        limit = time.monotonic() + 60
        while not self._file.exists() and time.monotonic() < limit:
            time.sleep(0.05)
        self.address = json.loads(self._file.read_text(encoding="utf-8"))["address"]
        self.workers = [
            self._start(
                "dask_worker", "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard"
            )
            for _ in range(2)
        ]

    def _start(self, module: str, *args: str) -> subprocess.Popen[bytes]:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.{module}",
            *args,
            "--scheduler-file",
            str(self._file),
        ]
        return subprocess.Popen(
            command,
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        for child in (*self.workers, self.scheduler):
            child.kill()
            child.wait()


@pytest.fixture
def cluster(tmp_path: Path, environment: dict[str, str]) -> Iterator[Cluster]:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "slow_pass_of_cluster.py").write_text(SLOW, encoding="utf-8")
    environment["PYTHONPATH"] += f"{os.pathsep}{tmp_path}"
    found = Cluster(tmp_path / "cluster", environment)
    yield found
    found.stop()


@pytest.mark.slow
def test_nothing_is_lost_when_a_worker_is_killed(
    cluster: Cluster, folder: Path, command: list[str], environment: dict[str, str], process: Run
) -> None:
    (folder / "many").mkdir()
    for index in range(16):
        shutil.copy(FIXTURES / "unet_opset9.onnx", folder / "many" / f"{index:02}.onnx")
    (folder / "many" / "text.onnx").write_text("hello", encoding="utf-8")
    args = ["batch", "many", "--pass", "slow_pass_of_cluster:slow", *FAST, "--out-dir"]
    child = subprocess.Popen(
        [*command, *args, "out", "--scheduler", cluster.address, "--json-lines", "log.jsonl"],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    limit = time.monotonic() + 120
    while len(list((folder / "out").glob("*.onnx"))) < 4 and time.monotonic() < limit:
        time.sleep(0.01)
    cluster.workers[0].send_signal(signal.SIGKILL)
    _, err = child.communicate(timeout=180)

    assert child.returncode == 1, err
    (said,) = [line for line in err.splitlines() if line.startswith("onnx-migrate: ")]
    assert said.startswith("onnx-migrate: not-onnx: many/text.onnx: ")
    *entries, totals = map(json.loads, (folder / "log.jsonl").read_text(encoding="utf-8").splitlines())
    assert sorted(entry["model"] for entry in entries) == sorted(
        f"many/{path.name}" for path in (folder / "many").iterdir()
    )
    assert totals["outcomes"] == {"migrated": 16, "unchanged": 0, "refused": 0, "failed": 1}
    assert process(*args, "local", "--jobs", "2").code == 1
    assert snapshot(folder / "out") == snapshot(folder / "local")


def test_a_scheduler_that_is_not_there_is_one_line(
    process: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = process("batch", "small.onnx", "--out-dir", "out", "--scheduler", "nonsense://127.0.0.1:9")

    assert (ended.code, ended.out) == (2, "")
    assert "no scheduler answers" in ended.err.splitlines()[-1]


def test_without_the_library_it_is_said(cli: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)

    ended = cli("batch", "small.onnx", "--out-dir", "out", "--scheduler", "tcp://127.0.0.1:8786")

    assert ended.code == 2
    assert "pip install 'onnx-migrate[dask]'" in ended.err
