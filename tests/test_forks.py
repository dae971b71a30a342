"""A fork waits for imports of other threads, and for nothing else; attributes that are computed once take no lock."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from onnx_migrate import forks
from onnx_migrate.cached import cached_property
from tests.support.skips import Elsewhere, skip_if

pytestmark = [
    skip_if(sys.platform == "win32", "forks", Elsewhere.LINUX),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@pytest.fixture
def slow_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module whose import takes half a second."""
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.5)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "slow_to_import", raising=False)
    return "slow_to_import"


def forked_import(name: str) -> int:
    """Import a module in another thread, and at the same time in a fork, and return how the fork ended."""
    thread = threading.Thread(target=__import__, args=(name,))
    thread.start()
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(3)
        __import__(name)
        os._exit(0)
    thread.join()
    return os.waitpid(child, 0)[1]


def test_a_module_that_calls_need_is_whole_in_the_fork(
    slow_module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "_PACKAGES", {slow_module})
    assert forked_import(slow_module) == 0


def test_a_module_of_the_standard_library_is_whole_in_the_fork(
    slow_module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as encodings.idna, which Python imports with the first text that needs it."""
    monkeypatch.setattr(sys, "stdlib_module_names", sys.stdlib_module_names | {slow_module})
    assert forked_import(slow_module) == 0


def test_the_end_of_another_import_is_not_waited_for(slow_module: str) -> None:
    """It may be that of the host's main loop, which never ends. What becomes of the fork is the host's matter."""
    start = time.monotonic()
    thread = threading.Thread(target=__import__, args=(slow_module,))
    thread.start()
    time.sleep(0.1)
    assert not forks.imported_by_others()
    assert time.monotonic() - start < 0.4
    thread.join()


def test_the_wait_has_an_end(slow_module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_PACKAGES", {slow_module})
    monkeypatch.setattr(forks, "_PATIENCE", 0.1)
    assert forked_import(slow_module) == signal.SIGALRM


class Slow:
    """Its attribute takes as long as an event is not set."""

    def __init__(self) -> None:
        self.go, self.begun, self.calls = threading.Event(), threading.Event(), 0

    @cached_property
    def value(self) -> int:
        self.begun.set()
        self.go.wait(10)
        self.calls += 1
        return self.calls


def test_the_attribute_of_one_object_waits_for_no_other_and_is_computed_once() -> None:
    slow, quick = Slow(), Slow()
    quick.go.set()
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    slow.begun.wait(10)
    assert quick.value == quick.value == 1
    assert thread.is_alive()
    slow.go.set()
    thread.join()
    assert (slow.value, slow.calls) == (1, 1)
    assert isinstance(Slow.value, cached_property)
