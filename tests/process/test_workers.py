"""Kept workers: who gets one, when one is replaced, that a call sees nothing of those before it, and that none is left over."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from onnx_migrate.process import Limits, OutOfMemory, Returned, Workers, run, using
from onnx_migrate.process.signals import STOPS
from tests.process.processes import alive, eventually
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, skip_if

VICTIM = """
import os, signal, sys, time
kept, calls = [], 0

def count():
    global calls
    calls += 1
    return calls

def crash_when_used():
    if count() > 1:
        os.abort()
    return os.getpid()

def leak(size):
    kept.append(bytearray(size))
    return os.getpid()

def take(size):
    return len(bytearray(size))

def lower_limit():
    import resource
    resource.setrlimit(resource.RLIMIT_DATA, (1 << 26, resource.getrlimit(resource.RLIMIT_DATA)[1]))

def nap(seconds):
    time.sleep(seconds)
    return os.getpid()
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """The workers of these calls, with a module that only they know."""
    (tmp_path / "used.py").write_text(VICTIM)
    monkeypatch.syspath_prepend(str(tmp_path))
    workers = Workers()
    with using(workers):
        yield workers
    workers.close()


def value(function: str, *args: object, **options: Any) -> Any:
    ending = run(function, *args, **options)
    assert isinstance(ending, Returned), ending
    return ending.value


def test_a_worker_is_kept_for_calls_from_the_same_setting(
    own: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = value("os:getpid")
    assert value("os:getpid") == first
    monkeypatch.setenv("ONE_MORE", "1")
    second = value("os:getpid")
    monkeypatch.chdir(tmp_path)
    third = value("os:getpid")
    monkeypatch.setattr(sys, "path", [*sys.path, "/elsewhere"])
    fourth = value("os:getpid")

    assert len({first, second, third, fourth}) == 4


def test_a_call_that_ends_a_used_worker_is_made_again_in_a_new_one(own: Workers) -> None:
    first = value("used:crash_when_used")
    assert value("used:crash_when_used") not in (first, None)
    assert str(run("os:abort")) == "the process crashed (SIGABRT)"
    assert value("used:count") == 1


def test_a_worker_that_somebody_ended_is_replaced(own: Workers) -> None:
    first = value("os:getpid")
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: not alive(first))
    assert value("os:getpid") != first


@skip_if(sys.platform != "linux", "RLIMIT_DATA covers mappings on Linux", Elsewhere.LINUX)
def test_memory_and_limits_that_a_call_leaves_are_not_the_next_one_s(own: Workers) -> None:
    limits = Limits(memory=300 << 20)
    first = value("used:leak", 100 << 20, limits=limits)
    assert value("used:take", 150 << 20, limits=limits) == 150 << 20
    run("used:lower_limit", limits=limits)
    assert value("used:take", 150 << 20, limits=limits) == 150 << 20
    assert value("os:getpid") == first
    assert isinstance(run("used:take", 1 << 29, limits=limits), OutOfMemory)
    assert value("os:getpid") != first
    assert value("used:leak", 300 << 20) != value("os:getpid")


def test_no_more_than_a_number_are_kept(own: Workers) -> None:
    workers = Workers(most=1)
    with using(workers), ThreadPoolExecutor(2) as threads:

        def nap(_: int) -> int:
            with using(workers):
                return int(value("used:nap", 0.3))

        pids = set(threads.map(nap, range(2)))
        assert len(pids) == 2
        assert eventually(lambda: sum(map(alive, pids)) == 1)
    workers.close()
    assert not any(map(alive, pids))


def test_a_worker_outlives_the_thread_that_asked_for_it(own: Workers) -> None:
    pids: list[int] = []

    def call() -> None:
        with using(own):
            pids.append(value("os:getpid"))

    for _ in range(3):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    time.sleep(0.1)

    assert len(set(pids)) == 1
    assert value("os:getpid") == pids[0]


def test_an_idle_worker_is_ended_and_waited_for() -> None:
    workers = Workers(idle=0.1)
    with using(workers):
        pid = value("os:getpid")
        assert eventually(
            lambda: not Path(f"/proc/{pid}").exists()
        )  # where one that has ended stands until then
        assert value("os:getpid") != pid
    workers.close()


def _in_fork(results: Any, parents: int) -> None:
    own = [run("os:getpid").value for _ in range(2)]  # type: ignore[union-attr]
    results.put((own, alive(parents)))


@skip_if(sys.platform != "linux", "forks", Elsewhere.LINUX)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_has_workers_of_its_own_which_end_with_it(own: Workers) -> None:
    parents = value("os:getpid")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    fork = context.Process(target=_in_fork, args=(results, parents))
    fork.start()
    (first, second), parents_alive = results.get(timeout=20)
    fork.join(20)

    assert fork.exitcode == 0
    assert first == second != parents
    assert parents_alive
    assert eventually(lambda: not alive(first))
    assert value("os:getpid") == parents


SCRIPT = """
import os, sys, threading
import onnx, onnx.parser
import onnx_migrate
model = onnx.parser.parse_model('<ir_version: 7, opset_import: ["": 11]> g (float[2,3] x) => (float[2,3] y) { y = Softmax (x) }')
print(onnx_migrate.migrate(model).report.verified)
from onnx_migrate.process import current_workers
pids = [worker._process.pid for worker, _ in current_workers()._waiting]
def again():
    assert onnx_migrate.migrate(model).report.verified
thread = threading.Thread(target=again)
thread.start()
thread.join()
print(*pids, *[worker._process.pid for worker, _ in current_workers()._waiting])
if sys.argv[1:] == ["raise"]:
    raise SystemExit(3)
if sys.argv[1:] == ["in a thread"]:
    def later():
        threading.main_thread().join()
        os.environ["OTHER"] = "1"  # another setting, so that new children are started
        again()
    threading.Thread(target=later).start()
if sys.argv[1:] == ["at once"]:
    sys.stdout.flush()
    os._exit(4)
"""


HOW = [("", 0), ("raise", 3), ("at once", 4)]
if sys.version_info[:3] not in ((3, 12, 0), (3, 12, 1)):  # which start nothing once the main thread has ended
    HOW.append(("in a thread", 0))


@pytest.mark.long
@pytest.mark.parametrize(("how", "code"), HOW)
def test_a_script_without_a_main_guard_leaves_no_process_and_no_folder(
    tmp_path: Path, how: str, code: int
) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp")}
    done = subprocess.run(
        [sys.executable, "script.py", how], cwd=tmp_path, env=environment, capture_output=True, text=True
    )

    verified, pids = done.stdout.splitlines()
    assert (done.returncode, done.stderr, verified) == (code, "", "True")
    assert pids
    assert eventually(lambda: not any(alive(int(pid)) for pid in pids.split()))
    left = [path.name for path in (tmp_path / "tmp").iterdir() if path.name != ".ses"]
    assert how == "at once" or not left


@skip_if(sys.platform != "linux", "looks into /proc", Elsewhere.LINUX)
def test_the_thread_that_ends_idle_workers_takes_no_signals() -> None:
    """A handler would run in the main thread where that blocks signals, and leave a folder that nothing knows of."""
    workers = Workers(60.0)
    with workers.borrowed():
        pass
    assert workers._timer is not None
    status = Path(f"/proc/self/task/{workers._timer.native_id}/status").read_text()
    workers.close()

    mask = int(status.partition("SigBlk:")[2].split()[0], 16)
    assert all(mask >> (number - 1) & 1 for number in STOPS)
