from __future__ import annotations

import pickle

import pytest

from onnx_migrate.process.endings import (
    Crashed,
    Ending,
    OutOfMemory,
    Raised,
    TimedOut,
    names_lack_of_memory,
    what_helps,
)


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (Raised("KeyError", "gone"), "KeyError: gone"),
        (Raised("KeyError", ""), "KeyError"),
        (Crashed("SIGSEGV"), "the process crashed (SIGSEGV)"),
        (TimedOut(1.5), "not done after 1.5 s"),
        (OutOfMemory(3 << 30), "out of memory (limit 3.0 GB)"),
        (OutOfMemory(300 << 20, cause="Exp: bad_alloc"), "out of memory (limit 0.29 GB): Exp: bad_alloc"),
        (OutOfMemory(None), "out of memory"),
    ],
)
def test_endings_read_as_messages_and_pickle(ending: Ending, text: str) -> None:
    assert str(ending) == text
    assert pickle.loads(pickle.dumps(ending)) == ending


def test_what_names_lack_of_memory() -> None:
    assert names_lack_of_memory("terminate called after throwing an instance of 'std::bad_alloc'")
    assert names_lack_of_memory("libgomp: Thread creation failed: Resource temporarily unavailable")
    assert names_lack_of_memory("ImportError: libx.so: failed to map segment from shared object")
    assert not names_lack_of_memory("Segmentation fault")


def test_what_helps() -> None:
    assert what_helps(TimedOut(1.0)) == "--timeout allows more time"
    assert what_helps(OutOfMemory(None)) == "--memory-limit allows more memory"
    assert not what_helps(Crashed("SIGSEGV"))


@pytest.mark.parametrize(
    ("signal", "outside"), [("SIGTERM", True), ("SIGKILL", True), ("SIGSEGV", False), ("exit code 3", False)]
)
def test_who_ended_a_process(signal: str, outside: bool) -> None:
    ending = Crashed(signal)
    assert ending.from_outside is outside
    assert ("from outside" in str(ending)) is outside
