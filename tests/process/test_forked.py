import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from onnx_migrate.errors import Cancelled
from onnx_migrate.process import Crashed, OutOfMemory, Raised, Returned, TimedOut, forked
from onnx_migrate.process.cancellation import stoppable
from onnx_migrate.process.endings import Ending
from onnx_migrate.process.forked import call_in_fork
from tests.process.processes import alive, eventually
from tests.support.paths import ROOT
from tests.support.skips import Elsewhere, skip_if

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


@skip_if(not os.path.exists("/proc/self/statm"), "memory is limited per call on Linux", Elsewhere.LINUX)
def test_memory_is_what_a_call_needs_in_addition() -> None:
    held = bytearray(LITTLE)  # of the parent
    assert isinstance(ask("builtins:bytearray", LITTLE // 4), Returned)
    assert isinstance(ask("builtins:bytearray", LITTLE * 2), OutOfMemory)
    assert len(held) == LITTLE


def test_a_call_that_hangs_lets_no_other_wait() -> None:
    hanging = threading.Thread(target=lambda: ask("time:sleep", 30, seconds=2.0))
    hanging.start()
    time.sleep(0.2)
    start = time.monotonic()
    for _ in range(5):
        assert ask("builtins:abs", -3) == Returned(3)
    assert hanging.is_alive()
    assert time.monotonic() - start < 1.5
    hanging.join()


def test_a_token_ends_a_call_and_its_copy() -> None:
    token, before = threading.Event(), of_the_copy()
    threading.Timer(0.2, token.set).start()
    start = time.monotonic()
    with pytest.raises(Cancelled), stoppable(token):
        ask("time:sleep", 30, seconds=30.0)
    assert time.monotonic() - start < 5
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)


def test_a_call_takes_half_of_the_time_that_is_left() -> None:
    with stoppable(None, 3.2):  # own work has three seconds in any case
        start = time.monotonic()
        assert isinstance(ask("time:sleep", 30, seconds=20.0), TimedOut)
    assert 1.2 < time.monotonic() - start < 3.0


@skip_if(sys.platform != "linux", "forks", Elsewhere.LINUX)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_during_a_call_of_another_thread_has_copies_of_its_own() -> None:
    before = of_the_copy()
    hanging = threading.Thread(target=lambda: ask("time:sleep", 1, seconds=5.0))
    hanging.start()
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if of_the_copy() != before else 1)
    assert os.waitpid(child, 0)[1] == 0
    hanging.join()
    assert of_the_copy() > 0


@skip_if(sys.platform != "linux", "SIGCHLD", Elsewhere.LINUX)
def test_a_host_that_ignores_sigchld_or_waits_for_all_children() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert ask("builtins:abs", -3) == Returned(3)
        assert "ignores SIGCHLD" in str(ask("os:abort"))
        assert isinstance(ask("time:sleep", 30, seconds=0.2), TimedOut)
    finally:
        signal.signal(signal.SIGCHLD, before)


@skip_if(sys.platform != "linux", "pipes of POSIX", Elsewhere.LINUX)
def test_a_copy_that_ended_raises_no_sigpipe() -> None:
    """A host that has set the default action of SIGPIPE would end."""
    before = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        for _ in range(2):
            assert isinstance(ask("os:_exit", 3), Crashed)
            assert ask("builtins:abs", -3) == Returned(3)
        _, copy = forked._kept[-1]
        os.kill(copy._process.pid, signal.SIGKILL)
        os.waitid(os.P_PID, copy._process.pid, os.WEXITED | os.WNOWAIT)
        assert isinstance(copy.call("builtins:abs", (-3,), 5.0, LITTLE), OutOfMemory)  # type: ignore[arg-type, call-arg]
        assert ask("builtins:abs", -3) == Returned(3)
    finally:
        signal.signal(signal.SIGPIPE, before)


PARENT = """
import sys, threading
from onnx_migrate.process import call_in_fork
def compute():
    call_in_fork("victim:hang_in_native", sys.argv[1], seconds=60.0, memory=1 << 30)
thread = threading.Thread(target=compute)
thread.start()
thread.join()
"""


@pytest.mark.long
@skip_if(sys.platform != "linux", "PR_SET_PDEATHSIG", Elsewhere.LINUX)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_native_code_ends_with_a_parent_that_is_killed(number: int, module: str, tmp_path: Path) -> None:
    begun = tmp_path / "pid"
    search = os.pathsep.join([str(tmp_path), str(ROOT)])
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(begun)], env={**os.environ, "PYTHONPATH": search}
    ) as parent:
        child = int(eventually(lambda: begun.exists() and begun.read_text()))
        parent.send_signal(number)
    assert eventually(lambda: not alive(child))


def test_threads_take_no_turns() -> None:
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


@skip_if(sys.platform != "linux", "elsewhere a Worker takes the calls", Elsewhere.LINUX)
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
