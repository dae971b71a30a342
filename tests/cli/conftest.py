"""A working folder, and two ways to run the command line there: in this process, and as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import SMALL, Ended, Raw, Run
from tests.support.paths import ROOT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a small model of opset 11 in it; temporary files are written to `tmp` next to it."""
    import onnx.parser

    work, tmp = tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    tmp.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("TMPDIR", str(tmp))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("tempfile.tempdir", str(tmp))
    onnx.save(onnx.parser.parse_model(SMALL), work / "small.onnx")
    return work


@pytest.fixture
def cli(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process, for tests that do not depend on the process."""
    from onnx_migrate.cli.app import run

    def invoke(*args: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            run([str(arg) for arg in args])
        code = end.value.code
        assert isinstance(code, int)
        return Ended(code, *capsys.readouterr())

    return invoke


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Return the start of a command line that runs like the console script: the working folder is not on sys.path."""
    script = tmp_path / "bin" / "onnx-migrate"
    script.parent.mkdir()
    script.write_text("from onnx_migrate.cli import main\nmain()\n", encoding="utf-8")
    return [sys.executable, str(script)]


@pytest.fixture
def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which a child finds this source tree."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.fixture
def raw(folder: Path, command: list[str], environment: dict[str, str]) -> Raw:
    """Run the command line as a process, with what subprocess.run is told besides; it reads and writes bytes."""

    def invoke(*args: object, start: Sequence[str] = (), **more: Any) -> subprocess.CompletedProcess[bytes]:
        given = {"cwd": folder, "env": environment, "capture_output": True, "timeout": 120, **more}
        return subprocess.run([*(start or command), *map(str, args)], **given)

    return invoke


@pytest.fixture
def process(raw: Raw, environment: dict[str, str]) -> Run:
    """Run the command line as a process, with more variables of the environment."""

    def invoke(*args: object, start: Sequence[str] = (), **more: str) -> Ended:
        done = raw(*args, start=start, env={**environment, **more})
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())

    return invoke
