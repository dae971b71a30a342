"""A program of another's: its answers, and each way it can end instead."""

from __future__ import annotations

import sys
import time

import pytest

from onnx_migrate.process import Crashed, Limits, OutOfMemory, Program, TimedOut
from tests.process.processes import alive, eventually
from tests.support.skips import Elsewhere, skip_if

_ECHO = "import sys, json\nfor line in sys.stdin:\n    print(json.dumps({'got': json.loads(line)['say']}), flush=True)\n"


def program(code: str, **limits: float) -> Program:
    return Program([sys.executable, "-c", code], Limits(**{"memory": None, **limits}))


def test_it_answers_one_request_after_the_other():
    with program(_ECHO) as running:
        assert running.ask({"say": 1}) == {"got": 1}
        assert running.ask({"say": "two"}) == {"got": "two"}


def test_it_may_speak_first():
    with program("print('{\"name\": 1}', flush=True); input()") as running:
        assert running.ask(None) == {"name": 1}


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (
            "import os, signal\ninput(); os.write(2, b'last words')\nos.kill(os.getpid(), signal.SIGSEGV)",
            Crashed("SIGSEGV", "last words"),
        ),
        ("input(); print('{\"got', end='', flush=True)", Crashed("exit code 0")),  # half an answer
        ("import sys; sys.exit('no such thing')", Crashed("exit code 1", "no such thing\n")),
    ],
)
def test_its_end_leaves_a_signal_or_a_code_and_the_last_words(code, ending):
    with program(code) as running:
        assert running.ask({}) == ending
        folder = running.folder
        assert folder.is_dir()
    assert not folder.exists()


def test_it_is_killed_with_what_it_started_when_it_takes_too_long(tmp_path):
    code = (
        "import subprocess, sys, pathlib\n"
        f"inner = subprocess.Popen(['sleep', '60']); pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(inner.pid))\n"
        "input(); inner.wait()"
    )
    start = time.perf_counter()
    with program(code, seconds=1.2) as running:
        assert isinstance(running.ask({}), TimedOut)
    assert not running.folder.exists()
    assert time.perf_counter() - start < 10
    assert eventually(lambda: not alive(int((tmp_path / "pid").read_text())))


@skip_if(sys.platform != "linux", "only Linux limits another process", Elsewhere.LINUX)
def test_its_memory_is_limited():
    code = "import sys\ninput()\nx = bytearray(2**30)\nprint('{}', flush=True)"
    with program(code, memory=2**28) as running:
        assert isinstance(running.ask({}), OutOfMemory)


def test_what_cannot_be_started_is_an_error_of_the_system():
    with pytest.raises(FileNotFoundError):
        Program(["no-such-program-here"], Limits())
