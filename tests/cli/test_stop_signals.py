"""A signal ends the command, also where Python drops the exception of its handler."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from onnx_migrate.cli import stop_signals
from onnx_migrate.process.signals import STOPS
from tests.support.skips import Elsewhere, skip, skip_if

HEAD = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from onnx_migrate.cli.stop_signals import check_stopped, code_of_stop, stop_on_signals
stop_on_signals()

class Dropping:
    def __init__(self, *numbers):
        self.numbers = numbers
    def __del__(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, self.numbers)
        for number in self.numbers:
            os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self.numbers)
        time.sleep(0.01)

def swallow(number):
    try:
        os.kill(os.getpid(), number)
        time.sleep(1)
    except BaseException:
        pass
"""

pytestmark = skip_if(sys.platform == "win32", "POSIX signals", Elsewhere.LINUX)


def ended(code: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code], capture_output=True, text=True, timeout=30, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("numbers", "code"),
    [
        ("signal.SIGTERM", 143),
        ("signal.SIGINT", 1),
        ("signal.SIGTERM, signal.SIGINT", 1),
    ],
)
def test_an_exception_that_a_destructor_drops_is_raised_again(numbers: str, code: int) -> None:
    """Of two that wait, Python calls the handler of SIGINT first. The exit code 1 is that of the code here."""
    found, out, error = ended(f"""
try:
    Dropping({numbers})
    time.sleep(5)
    print("went on")
except KeyboardInterrupt:
    sys.exit(1)
""")
    assert found == code
    assert "went on" not in out
    assert "ignored" not in error.lower()
    assert error.count("terminated") == ("SIGTERM" in numbers)


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_an_exception_that_a_library_catches_ends_the_command_between_stages(number: str, code: int) -> None:
    found, out, _ = ended(f"""
swallow(signal.{number})
print("went on")
try:
    check_stopped()
except KeyboardInterrupt:
    sys.exit(130)
print("and on")
""")
    assert (found, out) == (code, "went on\n")


@pytest.mark.parametrize(("number", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_the_exit_code_tells_it_where_there_was_no_stage_any_more(number: str, code: int) -> None:
    found, _, _ = ended(f"swallow(signal.{number})\nsys.exit(code_of_stop())")
    assert found == code


def test_nothing_is_raised_again_when_the_command_is_over() -> None:
    found, out, _ = ended("""
from onnx_migrate.cli.stop_signals import end_on_signals
Dropping(signal.SIGINT)
print(signal.getitimer(signal.ITIMER_REAL)[0] > 0)
end_on_signals()
print(signal.getitimer(signal.ITIMER_REAL)[0] > 0)
sys.exit(code_of_stop())
""")
    assert (found, out) == (130, "True\nFalse\n")


def test_two_signals_at_once_raise_one_exception() -> None:
    found, out, error = ended("""
try:
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
finally:
    time.sleep(0.01)
    print("cleaned up")
""")
    assert out == "cleaned up\n"
    assert found in (143, 130, -signal.SIGINT)
    assert error.count("Traceback") <= 1


def test_another_signal_a_moment_later_raises_again() -> None:
    found, out, _ = ended("""
try:
    swallow(signal.SIGINT)
    time.sleep(0.25)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)
    print("went on")
except KeyboardInterrupt:
    print("the first one")
""")
    assert (found, out) == (143, "")


@pytest.fixture
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in STOPS}
    hook = sys.unraisablehook
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    sys.unraisablehook = hook


@pytest.mark.usefixtures("handlers")
def test_sigint_stays_ignored_in_a_background_job() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stop_signals.stop_on_signals()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    assert stop_signals.code_of_stop() == 0
    stop_signals.check_stopped()


def test_other_exceptions_that_are_dropped_are_shown() -> None:
    _, _, error = ended("""
class Failing:
    def __del__(self):
        raise ValueError("here")
Failing()
""")
    assert "ValueError: here" in error


EARLY = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["onnx-migrate", "--version"]

class Signal:
    def find_spec(self, name, path=None, target=None):
        if name == "{module}":
            os.kill(os.getpid(), signal.{number})

sys.meta_path.insert(0, Signal())
from onnx_migrate.cli import main
main()
"""


@pytest.mark.parametrize(
    "module", ["onnx_migrate.cli.stop_signals", "rich_click", "onnx_migrate.cli.commands.migrate"]
)
@pytest.mark.parametrize(
    ("number", "code", "word"), [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "terminated")]
)
def test_a_signal_during_the_imports_ends_the_command_without_a_traceback(
    module: str, number: str, code: int, word: str
) -> None:
    if module.endswith("stop_signals") and number == "SIGTERM":
        skip("Python leaves it to the system until there is a handler", Elsewhere.NEVER)
    done = subprocess.run(
        [sys.executable, "-c", EARLY.format(module=module, number=number)],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    silent = module.endswith("stop_signals")
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == ("" if silent else f"onnx-migrate: {word}\n")


LATE = """
import atexit, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.argv = ["onnx-migrate", "--version"]
from onnx_migrate.cli import main
main()
"""


def test_an_interrupt_when_all_is_done_changes_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LATE], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("onnx-migrate")
