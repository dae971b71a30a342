"""Workers that are copies of a process of ours: they take calls and end as fresh ones do, and have what it has imported."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.skips import Elsewhere, skip_if

pytestmark = [
    pytest.mark.cold,
    skip_if(sys.platform != "linux", "copies are made on Linux alone", Elsewhere.LINUX),
]

SCRIPT = """
import os, signal, sys, tempfile, threading, time
import colorsys  # what a fresh worker does not import
from onnx_migrate.process import Worker
from onnx_migrate.process.copied import allow_copies, may_copy
print(may_copy())
allow_copies()
print(may_copy())
with Worker() as worker:
    print(worker.call("builtins:eval", "'colorsys' in __import__('sys').modules").value)
    print(worker.call("os:getpgrp").value == worker._process.pid)
    folder = worker.call("tempfile:gettempdir").value
    print("/onnx-migrate-" in folder and not os.path.exists(folder))
    print(worker.call("signal:getsignal", signal.SIGTERM).value == signal.SIG_DFL)
    print(worker.call("builtins:eval", "sorted(map(int, __import__('os').listdir('/proc/self/fd')))[:3]").value)
    print(type(worker.call("builtins:int", "no")).__name__, worker.alive)
    print(worker.call("os:abort"))
    print(worker.alive)
with Worker() as worker:
    print(worker.call("time:sleep", 60, seconds=0.5))
with Worker(memory=300 << 20) as worker:
    print(type(worker.call("builtins:bytearray", 1 << 30)).__name__)
thread = threading.Thread(target=time.sleep, args=(1,))
thread.start()
print(may_copy())
with Worker() as worker:
    print(worker.call("builtins:eval", "'colorsys' in __import__('sys').modules").value)
print(os.path.exists(folder))
"""


@pytest.mark.long
def test_a_copy_takes_calls_and_ends_as_a_fresh_worker() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        *("False", "True"),
        *("True", "True", "True", "True", "[0, 1, 2]", "Raised True"),
        *("the process crashed (SIGABRT)", "False"),
        "timed out after 0.5 s",
        "OutOfMemory",
        *("False", "False", "False"),
    ]
