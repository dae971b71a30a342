"""Each way a call in a child can end, and that no child outlives its parent or leaves files."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnx_migrate import process
from onnx_migrate.errors import UsageError
from onnx_migrate.process import Crashed, Limits, OutOfMemory, Raised, Returned, TimedOut
from onnx_migrate.process.worker import Worker
from tests.process.processes import alive, eventually
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, skip_if


@pytest.mark.parametrize("isolated", [True, False])
def test_a_value_comes_back(module, isolated):
    assert process.run(f"{module}:double", {"a": 1}["a"], isolated=isolated) == Returned(2)


@pytest.mark.parametrize("isolated", [True, False])
def test_an_exception_is_a_value(module, isolated):
    ending = process.run(f"{module}:divide", 1, isolated=isolated)
    assert isinstance(ending, Raised)
    assert (ending.kind, ending.message, ending.stage) == (
        "ZeroDivisionError",
        "division by zero",
        "dividing",
    )
    assert ending.error is None


@pytest.mark.parametrize("isolated", [True, False])
def test_our_own_errors_come_back_whole(module, isolated):
    ending = process.run(f"{module}:misuse", isolated=isolated)
    assert isinstance(ending, Raised)
    assert isinstance(ending.error, UsageError)
    assert (ending.error.reason, ending.error.code, ending.error.hint) == (
        "no such input",
        "input-data",
        "look",
    )


def test_a_crash_names_its_signal_and_stage(module):
    ending = process.run(f"{module}:crash")
    assert isinstance(ending, Crashed)
    assert (ending.signal, ending.stage) == ("SIGSEGV", "about to die")
    assert "last words" in ending.log


def test_an_early_exit_is_a_crash(module):
    assert process.run(f"{module}:leave") == Crashed("exit code 3")


def test_time_is_limited(module):
    start = time.perf_counter()
    ending = process.run(f"{module}:hang", limits=Limits(seconds=1.0))
    assert isinstance(ending, TimedOut)
    assert ending.stage == "hanging"
    assert time.perf_counter() - start < 20


@skip_if(sys.platform != "linux", "RLIMIT_DATA covers mappings on Linux", Elsewhere.LINUX)
def test_memory_is_limited(module):
    ending = process.run(f"{module}:eat", limits=Limits(memory=512 << 20))
    assert ending == OutOfMemory(512 << 20)


def test_the_callers_main_is_not_run_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from onnx_migrate import process\nprint('once')\nprint(process.run('math:sqrt', 4.0).value)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.stdout == "once\n2.0\n", done.stderr


@skip_if(sys.platform != "linux", "PDEATHSIG is Linux's", Elsewhere.LINUX)
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_child_dies_with_its_parent(module, tmp_path, end, start):
    note = tmp_path / "pid"
    code = f"from onnx_migrate import process; process.run('{module}:hang_in_native', {str(note)!r})"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    parent = start([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL)
    child = eventually(lambda: note.exists() and note.read_text())
    parent.send_signal(end)
    parent.wait(10)
    assert eventually(lambda: not alive(int(child)))


@pytest.mark.long
@skip_if(sys.platform != "linux", "PDEATHSIG is Linux's", Elsewhere.LINUX)
def test_a_child_of_a_child_dies_with_both(module: str, tmp_path: Path) -> None:
    """As in a batch, whose workers run the native stages of a model in children when it is tried again."""
    note = tmp_path / "pid"

    ending = process.run(f"{module}:nest", str(note), limits=Limits(seconds=3))

    assert isinstance(ending, TimedOut)
    assert eventually(lambda: not alive(int(note.read_text())))


def test_a_worker_takes_one_call_after_another(module: str) -> None:
    with Worker() as worker:
        pids = {worker.call(os.getpid).value for _ in range(3)}
        raised = worker.call(f"{module}:divide", 1)
        ending = worker.call(f"{module}:crash")

        assert len(pids) == 1
        assert os.getpid() not in pids
        assert (raised.kind, raised.stage) == ("ZeroDivisionError", "dividing")
        assert (ending.signal, ending.stage, ending.log.strip()) == ("SIGSEGV", "about to die", "last words")
        assert not worker.alive


def test_the_log_and_the_stage_are_of_the_call_alone(module: str) -> None:
    with Worker() as worker:
        worker.call(f"{module}:say", "of the first call", "first")
        ending = worker.call(f"{module}:leave")

    assert (ending.signal, ending.stage, ending.log) == ("exit code 3", "", "")


def test_why_a_worker_did_not_start_is_told_also_if_it_ended_before_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("onnx_migrate.process.worker.BOOT", "raise SystemExit('no room for a thread')")
    with Worker() as worker:
        worker._process.wait()
        ending = worker.call(os.getpid)

    assert isinstance(ending, Crashed)
    assert "no room for a thread" in ending.log


def test_time_is_limited_for_each_call(module: str) -> None:
    with Worker() as worker:
        assert worker.call(f"{module}:double", 1, seconds=20).value == 2
        assert isinstance(worker.call(f"{module}:hang", seconds=0.5), TimedOut)
        assert not worker.alive


def test_what_does_not_pickle(module: str) -> None:
    with Worker() as worker:
        with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
            worker.call(f"{module}:double", lambda: 1)
        returned = worker.call(f"{module}:closure")
        assert isinstance(returned, Raised)
        assert "local object" in returned.message  # Python 3.13 no longer says pickle
        assert worker.call(f"{module}:double", 4) == Returned(8)


def test_ctrl_c_of_a_terminal_does_not_reach_a_worker() -> None:
    with Worker() as worker:
        assert worker.call(os.getsid, 0).value != os.getsid(0)


def test_temporary_files_of_a_killed_child_are_removed(module: str, tmp_path: Path) -> None:
    note = tmp_path / "folder"

    ending = process.run(f"{module}:litter", str(note), limits=Limits(seconds=1.5))

    assert isinstance(ending, TimedOut)
    assert "onnx-migrate-" in note.read_text()
    assert not Path(note.read_text()).exists()


@pytest.mark.parametrize("isolated", [True, False])
def test_what_a_function_says_is_heard_before_it_ends(module, isolated):
    heard: list[str] = []
    assert process.run(f"{module}:count", isolated=isolated, listen=heard.append) == Returned(2)
    assert heard == ["one", "two"]
    assert process.run(f"{module}:count", isolated=isolated) == Returned(2)


def test_a_worker_that_is_ready_takes_the_call_and_one_that_has_ended_does_not(module):
    with Worker(modules=["wave", "no.such.module"]) as worker:
        first = process.run(f"{module}:pid", worker=worker)
        assert first == Returned(worker._process.pid)
        assert process.run(f"{module}:loaded", "wave", worker=worker) == Returned(True)
        assert process.run(f"{module}:loaded", "wave") == Returned(False)
        worker.kill()
        worker._process.wait()
        assert process.run(f"{module}:pid", worker=worker) != first
