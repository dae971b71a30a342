"""Calls in this process, the stages they set, how they end as values, and what they may use."""

from __future__ import annotations

import math
import os
import pickle
import sys
from pathlib import Path

import pytest

from onnx_migrate import process
from onnx_migrate.errors import UsageError
from onnx_migrate.process import Returned
from onnx_migrate.process.child import call, captured_output, heard_by, mark, say
from onnx_migrate.process.endings import (
    Crashed,
    Ending,
    OutOfMemory,
    Raised,
    TimedOut,
    names_lack_of_memory,
    what_helps,
)
from onnx_migrate.process.limits import Limits, less_memory, memory_limit
from tests.support.skips import Elsewhere, skip_if


@pytest.mark.parametrize("function", [math.sqrt, "math:sqrt"])
def test_a_function_by_itself_and_by_its_path(function: object) -> None:
    assert call(function, (4.0,)) == Returned(2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "kind"), [("no.such:f", "ModuleNotFoundError"), ("math:f", "AttributeError")]
)
def test_a_path_that_leads_nowhere(function: str, kind: str) -> None:
    ending = call(function, ())
    assert isinstance(ending, Raised)
    assert ending.kind == kind


def fail(error: Exception) -> None:
    mark("failing")
    raise error


def test_endings_keep_the_stage_and_our_own_error() -> None:
    error = UsageError("no such input")
    ending = call(fail, (error,))
    assert isinstance(ending, Raised)
    assert (ending.error, ending.stage) == (error, "failing")
    mark("of an earlier call")
    again = call(math.sqrt, (-1.0,))
    assert isinstance(again, Raised)
    assert (again.error, again.stage) == (None, "")


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("Failed to allocate memory for requested buffer")]
)
def test_lack_of_memory_is_recognised(error: Exception) -> None:
    ending = call(fail, (error,))
    assert isinstance(ending, OutOfMemory)
    assert (ending.stage, ending.cause) == ("failing", str(error))


def test_what_is_written_to_the_descriptor_is_collected() -> None:
    with captured_output() as text:
        os.write(2, b"a warning of native code")
        assert text() == "a warning of native code"
        os.write(2, b", and another")
    with captured_output() as text:
        assert text() == ""


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (Raised("KeyError", "gone"), "KeyError: gone"),
        (Raised("KeyError", ""), "KeyError"),
        (Crashed("SIGSEGV"), "the process crashed (SIGSEGV)"),
        (TimedOut(1.5), "timed out after 1.5 s"),
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


def test_memory_is_three_quarters_of_the_machine_unless_given() -> None:
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert Limits.of(5, None) == Limits(5, whole * 3 // 4)
    assert Limits.of(5, 1 << 30) == Limits(5, 1 << 30)


@skip_if(sys.platform != "linux", "RLIMIT_DATA covers mappings on Linux", Elsewhere.LINUX)
def test_the_limit_is_of_the_child_alone() -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    inside = process.run("resource:getrlimit", resource.RLIMIT_DATA, limits=Limits(memory=1 << 30))
    assert isinstance(inside, process.Returned)
    assert inside.value[0] == 1 << 30
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


LESS = """
from onnx_migrate.process.limits import data_size, less_memory, memory_limit

def taken(more, size):
    before = memory_limit()
    try:
        with less_memory(more):
            assert memory_limit() <= data_size() + more
            return len(bytes(size)), None
    except MemoryError:
        return 0, memory_limit() == before
"""


@skip_if(sys.platform != "linux", "RLIMIT_DATA covers mappings on Linux", Elsewhere.LINUX)
def test_a_block_may_take_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "less_memory_in_child.py").write_text(LESS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for more, size, expected in ((64 << 20, 16 << 20, (16 << 20, None)), (64 << 20, 256 << 20, (0, True))):
        ending = process.run("less_memory_in_child:taken", more, size, limits=Limits(memory=1 << 30))
        assert isinstance(ending, process.Returned), ending
        assert ending.value == expected


def test_a_process_without_a_limit_gets_none() -> None:
    before = memory_limit()
    with less_memory(1 << 20):
        assert memory_limit() == before
    assert memory_limit() == before


def test_what_a_thread_says_outside_of_calls_is_heard() -> None:
    heard: list[str] = []
    say("nobody listens")
    with heard_by(heard.append):
        say("before")
        call(say, ("in a call",), None)
        say("after")
    say("nobody listens")

    assert heard == ["before", "after"]
