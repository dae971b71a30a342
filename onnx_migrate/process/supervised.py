"""A child process under watch: a folder and a log of its own, a time limit for each request, and how it ended.

It is a worker, of our own code (worker.py), or a program that is not ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from onnx_migrate.process.cancellation import when_cancelled
from onnx_migrate.process.copied import CopiedProcess
from onnx_migrate.process.endings import Crashed, Ending, OutOfMemory, TimedOut, names_lack_of_memory
from onnx_migrate.process.limits import Limits
from onnx_migrate.process.signals import start_blocked
from onnx_migrate.process.temporary import TemporaryFolder

__all__ = ["Program", "Supervised"]

Own = TypeVar("Own", bound="Supervised")

_LOG_TAIL = 4000
"""How many bytes of what the child printed are kept for messages."""

_CLOSING = 5.0
"""Seconds that a child which closed its streams may take to end before it is killed."""


class Supervised:
    """A running child in a session of its own; must be closed by the thread that made it.

    Its temporary files and its log of standard error lie in `folder`, which is removed with it. `memory` is its limit in
    bytes, for messages only. Raises OSError where the command cannot be run.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        memory: int | None,
        *,
        in_folder: bool = False,
    ) -> None:
        self.memory = memory
        self._timed_out = False
        self._temporary = TemporaryFolder()
        self.folder = self._temporary.path
        self._log = self.folder / "log"
        try:
            self._process = self._start(command, environment, in_folder=in_folder)
        except OSError:
            self._temporary.remove()
            raise

    def __enter__(self: Own) -> Own:
        return self

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], *, in_folder: bool
    ) -> subprocess.Popen[bytes] | CopiedProcess:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                cwd=self.folder if in_folder else None,
                env={**environment, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.folder))},
            )

    def __exit__(self, *error: object) -> None:
        self.close()

    def kill(self) -> None:
        """End the child and what it started, whatever they do; may be called by any thread."""
        with contextlib.suppress(PermissionError):  # macOS refuses where all have ended
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (AttributeError, ProcessLookupError):  # on Windows; and of a copy that has no session yet
                self._process.kill()

    def close(self) -> None:
        """End the child and remove its folder."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # a request that was not read is given up
                stream.close()  # type: ignore[union-attr]
        self._temporary.remove()

    @contextlib.contextmanager
    def _killed_after(self, seconds: float | None) -> Iterator[None]:
        """Kill the child if the block takes longer, None is no limit, or the call is cancelled. Raises Stopped then."""
        timer = threading.Timer(seconds or 0.0, self._expire)
        timer.daemon = True
        if seconds is not None:
            start_blocked(timer)
        try:
            with when_cancelled(self.kill):
                yield
        finally:
            timer.cancel()

    def _expire(self) -> None:
        self._timed_out = True
        self.kill()

    def _log_size(self) -> int:
        return self._log.stat().st_size

    def _tail(self, printed: int) -> str:
        """Return the end of what was printed after the first `printed` bytes of the log."""
        with self._log.open("rb") as file:
            file.seek(max(printed, file.seek(0, os.SEEK_END) - _LOG_TAIL))
            return file.read().decode("utf-8", "replace")

    def _ended(self, seconds: float | None, printed: int, stage: str = "") -> Ending:
        """Return how a child that has closed its streams ended; `seconds` was the limit of the request."""
        try:
            code = self._process.wait(_CLOSING)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        log = self._tail(printed)
        if self._timed_out:
            return TimedOut(seconds or 0.0, log, stage)
        if -code == getattr(signal, "SIGKILL", 9) or names_lack_of_memory(log):
            return OutOfMemory(self.memory, log, stage)
        return Crashed(signal.Signals(-code).name if code < 0 else f"exit code {code}", log, stage)


class Program(Supervised):
    """A running program that is not ours, in its `folder`: it takes requests as lines of JSON and answers each with one.

    `limits.memory` bounds its private writable memory, and that of what it starts, where the system has prlimit;
    `limits.seconds` the time that one request may take. Raises OSError where the command cannot be run.
    """

    def __init__(
        self, command: Sequence[str], limits: Limits, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(command, {**os.environ, **(environment or {})}, limits.memory, in_folder=True)
        self._limits = limits
        self._printed = 0
        if limits.memory is not None:
            _limit_memory(self._process.pid, limits.memory)

    def ask(self, request: Mapping[str, Any] | None) -> dict[str, Any] | Ending:
        """Send a request (None: nothing, where the program speaks first) and return its answer, or how it ended instead."""
        self._printed = self._log_size()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._killed_after(self._limits.seconds):
            try:
                if request is not None:
                    self._process.stdin.write(json.dumps(request).encode() + b"\n")
                    self._process.stdin.flush()
                line = self._process.stdout.readline()
                if line.endswith(b"\n"):
                    answer: dict[str, Any] = json.loads(line)
                    return answer
                return self._ended(self._limits.seconds, self._printed)
            except OSError:
                return self._ended(self._limits.seconds, self._printed)

    def printed(self) -> str:
        """Return the end of what it has printed since the last request."""
        return self._tail(self._printed)


def _limit_memory(process: int, memory: int) -> None:
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):  # Linux has prlimit
        import resource

        hard = resource.prlimit(process, resource.RLIMIT_DATA)[1]
        soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.prlimit(process, resource.RLIMIT_DATA, (soft, hard))
