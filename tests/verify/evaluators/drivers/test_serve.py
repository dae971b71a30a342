"""The program in which a foreign runtime runs, with a driver that needs nothing but NumPy."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from onnx_migrate.process import Crashed, Limits, Program
from onnx_migrate.verify.evaluators.drivers.serve import main

_DRIVER = """
import os
def version(): return "doubler 1"
def load(path, example, outputs):
    if path == "bad": raise ValueError("cannot read it")
    print("noise on stdout")
    def run(feed):
        if feed["x"].size == 3: raise KeyError("three")
        if feed["x"].size == 5: raise ValueError("Traceback (most recent call last):\\n  in f\\nOSError: no file")
        if feed["x"].size == 4: os.abort()
        return [feed["x"] * 2 for _ in outputs]
    return run
"""


@pytest.fixture
def served(tmp_path):
    (tmp_path / "driver.py").write_text(_DRIVER, encoding="utf-8")
    command = [sys.executable, sys.modules[main.__module__].__file__, str(tmp_path / "driver.py")]
    with Program(command, Limits(60.0)) as program:
        assert program.ask(None)["runtime"] == "doubler 1"
        yield program


def feed(folder: Path, size: int) -> str:
    np.savez(folder / "in.npz", x=np.arange(size))
    return str(folder / "in.npz")


def test_it_loads_and_runs(served, tmp_path):
    assert served.ask({"load": "m", "inputs": feed(tmp_path, 2), "outputs": ["a", "b"]}) == {"loaded": True}
    assert served.ask({"run": feed(tmp_path, 2), "write": str(tmp_path / "out.npz")}) == {"ran": True}
    with np.load(tmp_path / "out.npz") as found:
        assert [found[name].tolist() for name in found.files] == [[0, 2], [0, 2]]


def test_errors_are_answers(served, tmp_path):
    assert served.ask({"load": "bad", "inputs": feed(tmp_path, 2), "outputs": ["a"]}) == {
        "error": "cannot read it"
    }
    served.ask({"load": "m", "inputs": feed(tmp_path, 3), "outputs": ["a"]})
    assert served.ask({"run": feed(tmp_path, 3), "write": "out.npz"}) == {"error": "'three'"}
    assert served.ask({"run": feed(tmp_path, 5), "write": "out.npz"}) == {"error": "OSError: no file"}


def test_a_crash_ends_only_the_program(served, tmp_path):
    served.ask({"load": "m", "inputs": feed(tmp_path, 4), "outputs": ["a"]})
    assert served.ask({"run": feed(tmp_path, 4), "write": "out.npz"}) == Crashed("SIGABRT")


def test_what_a_driver_lacks_is_said(tmp_path):
    (tmp_path / "driver.py").write_text("import no_such_package", encoding="utf-8")
    command = [sys.executable, sys.modules[main.__module__].__file__, str(tmp_path / "driver.py")]
    with Program(command, Limits(60.0)) as program:
        assert program.ask(None) == {"missing": "No module named 'no_such_package'"}
