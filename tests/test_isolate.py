"""Each way a child can end, and that it never outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnx_migrate import isolate
from onnx_migrate.errors import UsageError
from onnx_migrate.isolate import Crashed, Limits, OutOfMemory, Raised, Returned, TimedOut
from tests.support.paths import ROOT


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module that only the caller's sys.path knows."""
    (tmp_path / "victim.py").write_text(
        "import ctypes, os, time, sys\n"
        "from onnx_migrate.errors import UsageError\n"
        "from onnx_migrate.isolate import mark\n"
        "def double(x): print('noise on stdout'); return 2 * x\n"
        "def divide(x): mark('dividing'); return x / 0\n"
        "def misuse(): raise UsageError('no such input', code='input-data', hint='look')\n"
        "def crash(): mark('about to die'); print('last words', file=sys.stderr, flush=True); ctypes.string_at(0)\n"
        "def leave(): os._exit(3)\n"
        "def hang(): mark('hanging'); time.sleep(60)\n"
        "def eat(): return len(bytearray(4 << 30))\n"
        "def hang_in_native(path):\n"
        "    open(path, 'w').write(str(os.getpid()))\n"
        "    ctypes.PyDLL(None).sleep(60)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return "victim"


@pytest.mark.parametrize("isolated", [True, False])
def test_a_value_comes_back(module, isolated):
    assert isolate.run(f"{module}:double", {"a": 1}["a"], isolated=isolated) == Returned(2)


@pytest.mark.parametrize("isolated", [True, False])
def test_an_exception_is_a_value(module, isolated):
    ending = isolate.run(f"{module}:divide", 1, isolated=isolated)
    assert isinstance(ending, Raised)
    assert (ending.kind, ending.message, ending.stage) == (
        "ZeroDivisionError",
        "division by zero",
        "dividing",
    )
    assert ending.error is None


@pytest.mark.parametrize("isolated", [True, False])
def test_our_own_errors_come_back_whole(module, isolated):
    ending = isolate.run(f"{module}:misuse", isolated=isolated)
    assert isinstance(ending, Raised)
    assert isinstance(ending.error, UsageError)
    assert (ending.error.reason, ending.error.code, ending.error.hint) == (
        "no such input",
        "input-data",
        "look",
    )


def test_a_crash_names_its_signal_and_stage(module):
    ending = isolate.run(f"{module}:crash")
    assert isinstance(ending, Crashed)
    assert (ending.signal, ending.stage) == ("SIGSEGV", "about to die")
    assert "last words" in ending.log


def test_an_early_exit_is_a_crash(module):
    assert isolate.run(f"{module}:leave") == Crashed("exit code 3")


def test_time_is_limited(module):
    start = time.perf_counter()
    ending = isolate.run(f"{module}:hang", limits=Limits(seconds=1.0))
    assert isinstance(ending, TimedOut)
    assert ending.stage == "hanging"
    assert time.perf_counter() - start < 5


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA covers mappings on Linux")
def test_memory_is_limited(module):
    ending = isolate.run(f"{module}:eat", limits=Limits(memory=512 << 20))
    assert ending == OutOfMemory(512 << 20)


def test_the_callers_main_is_not_run_again(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from onnx_migrate import isolate\nprint('once')\nprint(isolate.run('math:sqrt', 4.0).value)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert done.stdout == "once\n2.0\n", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="PDEATHSIG is Linux's")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_child_dies_with_its_parent(module, tmp_path, end):
    note = tmp_path / "pid"
    code = f"from onnx_migrate import isolate; isolate.run('{module}:hang_in_native', {str(note)!r})"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment, stderr=subprocess.DEVNULL)
    child = _eventually(lambda: note.exists() and note.read_text())
    parent.send_signal(end)
    parent.wait(10)
    assert _eventually(lambda: not _alive(int(child)))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _eventually(condition):
    for _ in range(200):
        found = condition()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("did not happen within 10 s")
