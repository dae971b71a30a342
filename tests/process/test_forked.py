import os
import subprocess
import sys
import threading
import time

import pytest

from onnx_migrate.process import Crashed, OutOfMemory, Raised, Returned, TimedOut
from onnx_migrate.process.endings import Ending
from onnx_migrate.process.forked import call_in_fork

LITTLE = 1 << 28


def ask(function: str, *args: object, seconds: float = 20.0, memory: int = LITTLE) -> Ending:
    return call_in_fork(function, *args, seconds=seconds, memory=memory)


def of_the_copy() -> int:
    ending = ask("os:getpid")
    assert isinstance(ending, Returned)
    return int(ending.value)


@pytest.mark.parametrize("size", [0, 7, 8, 9, 1 << 16, (1 << 20) + 1, 5_000_000])
def test_values_go_there_and_come_back(size: int) -> None:
    data = os.urandom(size)
    assert ask("builtins:bytes", data) == Returned(data)


def test_calls_share_a_process_that_is_not_this_one() -> None:
    assert of_the_copy() == of_the_copy() != os.getpid()


def test_an_exception_leaves_the_process_as_it_is() -> None:
    before = of_the_copy()
    ending = ask("operator:truediv", 1, 0)
    assert isinstance(ending, Raised)
    assert ending.kind == "ZeroDivisionError"
    assert of_the_copy() == before


@pytest.mark.parametrize(
    ("function", "arguments", "kind"),
    [
        ("os:abort", (), Crashed),
        ("os:_exit", (3,), Crashed),
        ("time:sleep", (60,), TimedOut),
        ("builtins:bytearray", (1 << 40,), OutOfMemory),
    ],
)
def test_what_ends_a_call_badly_ends_nothing_else(
    function: str, arguments: tuple[object, ...], kind: type
) -> None:
    before, start = of_the_copy(), time.monotonic()
    assert isinstance(ask(function, *arguments, seconds=1.0), kind)
    assert time.monotonic() - start < 10
    after = of_the_copy()
    assert after not in (before, os.getpid())
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is limited per call on Linux")
def test_memory_is_what_a_call_needs_in_addition() -> None:
    held = bytearray(LITTLE)  # of the parent
    assert isinstance(ask("builtins:bytearray", LITTLE // 4), Returned)
    assert isinstance(ask("builtins:bytearray", LITTLE * 2), OutOfMemory)
    assert len(held) == LITTLE


def test_threads_take_turns() -> None:
    found: list[Ending] = []
    threads = [
        threading.Thread(target=lambda: found.extend(ask("builtins:abs", -3) for _ in range(20)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [Returned(3)] * 80


def test_an_interruption_ends_the_copy() -> None:
    before = of_the_copy()
    interrupt = threading.Timer(0.3, lambda: os.kill(os.getpid(), 2))
    interrupt.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ask("time:sleep", 60, seconds=60.0)
    assert time.monotonic() - start < 5
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert of_the_copy() != before


def test_another_state_gets_a_new_copy() -> None:
    def process(state: object) -> object:
        return call_in_fork("os:getpid", seconds=20.0, memory=LITTLE, state=state)

    first = process(1)
    assert process(1) == first
    assert process(2) != first


STOPPED_AT_ONCE = """
import os, signal, sys
from onnx_migrate.process import forked
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
real = os.fork

def fork():
    process = real()
    if process:
        os.kill(process, signal.SIGTERM)
        os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    return process

os.fork = fork
print(forked.call_in_fork("os:getpid", seconds=5.0, memory=1 << 28))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a Worker takes the calls")
def test_a_signal_to_a_new_copy_runs_no_handler_of_this_process() -> None:
    """The copy would go on as if it were this process, or not end at all."""
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_AT_ONCE], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "the process was ended from outside (SIGTERM)\n",
        "",
    )
