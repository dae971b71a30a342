"""A module of functions that end in every way; the children here start from nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.warm_start import WarmPopen

VICTIM = """
import ctypes, os, sys, tempfile, time
from onnx_migrate.errors import UsageError
from onnx_migrate.process import Limits, mark, run
from onnx_migrate.process import say as tell

def double(x):
    print('noise on stdout')
    return 2 * x

def divide(x):
    mark('dividing')
    return x / 0

def say(text, stage):
    mark(stage)
    print(text, file=sys.stderr, flush=True)

def misuse():
    raise UsageError('no such input', code='input-data', hint='look')

def crash():
    mark('about to die')
    print('last words', file=sys.stderr, flush=True)
    ctypes.string_at(0)

def count():
    tell("one")
    tell("two")
    return 2

def pid():
    return os.getpid()

def loaded(name):
    return name in sys.modules

def leave():
    os._exit(3)

def hang():
    mark('hanging')
    time.sleep(60)

def eat():
    return len(bytearray(4 << 30))

def closure():
    return lambda: 1

def hang_in_native(path):
    open(path, 'w').write(str(os.getpid()))
    ctypes.PyDLL(None).sleep(60)

def nest(path):
    return run('victim:hang_in_native', path, limits=Limits(seconds=60))

def litter(path):
    folder = tempfile.mkdtemp()
    open(path, 'w').write(folder)
    time.sleep(60)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module that only the caller's sys.path knows."""
    (tmp_path / "victim.py").write_text(VICTIM, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return "victim"


@pytest.fixture(autouse=True)
def from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """How a child starts and ends is what these tests are about."""
    monkeypatch.setattr(WarmPopen, "on", False)
