"""A program that is not ours, in a process of its own: it takes requests as lines of JSON and answers each with one.

As with a worker (worker.py), what it does to itself ends nothing else: it may crash, hang or take all memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx_migrate.isolate.endings import Crashed, Ending, OutOfMemory, TimedOut, names_lack_of_memory
from onnx_migrate.isolate.limits import Limits

__all__ = ["Program"]

_LOG_TAIL = 4000
"""How many bytes of what it printed are kept for messages."""

_CLOSING = 5.0
"""Seconds that a program which closed its streams may take to end before it is killed."""


class Program:
    """A running program; must be closed by the thread that made it. `folder` is its own, and removed with it.

    `limits.memory` bounds its private writable memory, and that of what it starts, where the system has prlimit;
    `limits.seconds` the time that one request may take. Raises OSError where the command cannot be run.
    """

    def __init__(
        self, command: Sequence[str], limits: Limits, environment: Mapping[str, str] | None = None
    ) -> None:
        self._limits = limits
        self._timed_out = False
        self._temporary = tempfile.TemporaryDirectory(prefix="onnx-migrate-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        self._log = self.folder / "log"
        self._printed = 0
        try:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    list(command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                    cwd=self.folder,
                    env={**os.environ, **(environment or {}), "TMPDIR": self._temporary.name},
                )
        except OSError:
            self._temporary.cleanup()
            raise
        if limits.memory is not None:
            _limit_memory(self._process.pid, limits.memory)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self, request: Mapping[str, Any] | None) -> dict[str, Any] | Ending:
        """Send a request (None: nothing, where the program speaks first) and return its answer, or how it ended instead."""
        self._printed = self._log.stat().st_size
        timer = threading.Timer(self._limits.seconds or 0.0, self._expire)
        timer.daemon = True
        if self._limits.seconds is not None:
            timer.start()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            if request is not None:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
            line = self._process.stdout.readline()
            if line.endswith(b"\n"):
                answer: dict[str, Any] = json.loads(line)
                return answer
            return self._ended()
        except OSError:
            return self._ended()
        finally:
            timer.cancel()

    def printed(self) -> str:
        """Return the end of what it has printed since the last request."""
        with self._log.open("rb") as file:
            file.seek(max(self._printed, file.seek(0, os.SEEK_END) - _LOG_TAIL))
            return file.read().decode("utf-8", "replace")

    def kill(self) -> None:
        """End the program and what it started, whatever they do; may be called by any thread."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses where all have ended
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def close(self) -> None:
        """End the program and remove its folder."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # a request that was not read is given up
                stream.close()  # type: ignore[union-attr]
        self._temporary.cleanup()

    def _expire(self) -> None:
        self._timed_out = True
        self.kill()

    def _ended(self) -> Ending:
        try:
            code = self._process.wait(_CLOSING)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        log = self.printed()
        if self._timed_out:
            return TimedOut(self._limits.seconds or 0.0, log)
        if -code == getattr(signal, "SIGKILL", 9) or names_lack_of_memory(log):
            return OutOfMemory(self._limits.memory, log)
        return Crashed(signal.Signals(-code).name if code < 0 else f"exit code {code}", log)


def _limit_memory(process: int, memory: int) -> None:
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):  # Linux has prlimit
        import resource

        hard = resource.prlimit(process, resource.RLIMIT_DATA)[1]
        soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.prlimit(process, resource.RLIMIT_DATA, (soft, hard))
