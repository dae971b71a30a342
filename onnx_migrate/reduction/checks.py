"""The checks that a model fails: a shell command, or a run in another runtime."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from onnx_migrate import files
from onnx_migrate.errors import SaveError, UsageError
from onnx_migrate.model.model import Model
from onnx_migrate.process import seconds_left
from onnx_migrate.process.cancellation import INTERVAL, check_cancelled
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.reduction.candidate import Candidate
from onnx_migrate.reduction.failures import Failure
from onnx_migrate.verify.npz import write_npz

__all__ = ["Check", "CommandCheck", "Runner", "write_model", "written"]

_TAIL = 8000
"""Bytes of the end of an output that are kept."""


class Runner(Protocol):
    """Runs a check in one thread, one candidate after the other."""

    def failure(self, candidate: Candidate) -> Failure | None:
        """Return how a candidate fails; None if it passes."""

    def close(self) -> None:
        """End the processes of the check."""


class Check(Protocol):
    """A check that models fail."""

    @property
    def needs_values(self) -> bool:
        """Whether the check compares outputs, so that candidates need the values of inputs and outputs."""

    def runner(self) -> Runner:
        """Return a runner for one thread."""

    def command(self, model: str, inputs: str) -> str:
        """Return the command that reproduces the failure of a model in a file, with inputs in a file, "" if there are none."""


def write_model(model: Model, path: Path) -> None:
    """Write a model for a check; a large one gets a second file with its weights. Raises SaveError."""
    with path.open("wb") as file:
        try:
            files.write(model, file)
            return
        except SaveError:  # over 2 GB
            pass
    path.unlink()
    files.save(model, path)


def written(candidate: Candidate, folder: Path) -> Path:
    """Return the file of a candidate: the user's own for an unchanged model, else a new one in the folder. Raises SaveError."""
    if candidate.path:
        return Path(candidate.path)
    path = folder / "model.onnx"
    write_model(candidate.model, path)
    return path


@dataclass(frozen=True)
class CommandCheck:
    """A shell command with {} for the model and {inputs} for an .npz of its inputs.

    It fails if it exits with another code than 0. With `wanted`, only this exit code or signal is a failure.
    """

    text: str
    seconds: float
    wanted: str = ""

    def __post_init__(self) -> None:
        """Raise UsageError for a command without a place for the model."""
        if "{}" not in self.text:
            raise UsageError(
                f"the command {self.text!r} has no {{}} for the path of the model",
                code="bad-check",
                hint="write {} in place of the model, as in --check 'python check.py {}'",
            )

    @property
    def needs_values(self) -> bool:
        """Whether the command reads inputs."""
        return "{inputs}" in self.text

    def command(self, model: str, inputs: str) -> str:
        """Return the command for a model."""
        return self.text.replace("{inputs}", shlex.quote(inputs)).replace("{}", shlex.quote(model))

    def runner(self) -> Runner:
        """Return a runner for one thread."""
        return _CommandRunner(self)


class _CommandRunner:
    """Runs the command in a folder of its own for the models."""

    def __init__(self, check: CommandCheck) -> None:
        self._check = check
        self._folder = TemporaryFolder()

    def close(self) -> None:
        self._folder.remove()

    def failure(self, candidate: Candidate) -> Failure | None:
        path, inputs = written(candidate, self._folder.path), self._folder.path / "inputs.npz"
        if self._check.needs_values:
            write_npz(inputs, candidate.complete_feed())
        run_failure = _run(self._check.command(str(path), str(inputs)), self._check.seconds)
        if run_failure is not None and self._check.wanted not in ("", run_failure.detail):
            return None
        return run_failure


def _run(command: str, seconds: float) -> Failure | None:
    """Run a command, and return how it failed. Its processes end with it."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Processes that the command starts stay in its session, so one signal ends all of them.
            start_new_session=True,
        )
        try:
            code = _waited(process, seconds)
        finally:
            _end(process)
        size = output.seek(0, os.SEEK_END)
        output.seek(max(0, size - _TAIL))
        text = output.read().decode("utf-8", "replace")
    if code is None:
        return Failure("time-out", "", text)
    number = -code if code < 0 else code - 128 if 128 < code < 160 else 0
    if number:  # a shell exits with 128 and the number of the signal that ended its command
        with contextlib.suppress(ValueError):
            return Failure("signal", signal.Signals(number).name, text)
    return Failure("exit", str(code), text) if code else None


def _waited(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit code, None if the time is over. Raises Stopped."""
    end = time.monotonic() + min(seconds, seconds_left())
    while True:
        check_cancelled()
        try:
            return process.wait(min(INTERVAL, max(0.0, end - time.monotonic())))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command with the processes that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
