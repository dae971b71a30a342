"""Supervises a child process: with a log of its own, a time limit for each request, and a report of its end.

The child is a worker with our own code (worker.py), or another program.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, TypeVar

from onnx_migrate.process.channel import Channel, PipeChannel, SocketChannel
from onnx_migrate.process.copied import CopiedProcess
from onnx_migrate.process.endings import Crashed, Ending, OutOfMemory, TimedOut, names_lack_of_memory
from onnx_migrate.process.limits import Limits
from onnx_migrate.process.temporary import TEMPORARY, TemporaryFolder
from onnx_migrate.process.waiting import Expired, Waiting

__all__ = ["Program", "Supervised", "crash_of"]

Own = TypeVar("Own", bound="Supervised")

_LOG_TAIL = 4000
"""Number of bytes of the child's output that messages may show."""

_CLOSING = 5.0
"""A child that closed its streams has so many seconds to end before it is killed."""


class Supervised:
    """A running child in a session of its own; must be closed by the thread that made it.

    Its standard error goes to a file without a name, which ends with it even where this process is killed. `memory` is its
    limit in bytes, for messages only. Raises OSError where the command cannot be run.
    """

    def __init__(self, memory: int | None) -> None:
        self.memory = memory
        self._timed_out = self._killed = False
        with contextlib.ExitStack() as undo:
            self._log = undo.enter_context(_log_file())
            self._process, self._channel = self._start()
            undo.pop_all()

    def _start(self) -> tuple[subprocess.Popen[bytes] | CopiedProcess, Channel]:
        raise NotImplementedError

    def _run(
        self, command: Sequence[str], environment: Mapping[str, str], folder: str | None = None
    ) -> tuple[subprocess.Popen[bytes], Channel]:
        """Start a command, in a working folder of its own if there is one."""
        if sys.platform == "win32":
            pipes = subprocess.PIPE
            process = subprocess.Popen(
                list(command), stdin=pipes, stdout=pipes, stderr=self._log, cwd=folder, env=environment, bufsize=0
            )  # fmt: skip
            return process, PipeChannel(process)
        channel = SocketChannel()
        try:
            process = subprocess.Popen(
                list(command),
                stdin=channel.theirs.fileno(),
                stdout=channel.theirs.fileno(),
                stderr=self._log,
                start_new_session=True,
                cwd=folder,
                env=environment,
            )
        except BaseException:
            channel.close()
            raise
        channel.theirs.close()
        return process, channel

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def kill(self) -> None:
        """End the child and the processes it started, even busy ones; any thread may call this."""
        self._killed = True
        with contextlib.suppress(PermissionError):  # macOS refuses where all have ended
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (AttributeError, ProcessLookupError):  # on Windows; and of a copy that has no session yet
                self._process.kill()

    def close(self) -> None:
        """End the child and close its log."""
        self.kill()
        self._process.wait()
        self._channel.close()
        self._log.close()

    @contextlib.contextmanager
    def _waiting(self, seconds: float | None) -> Iterator[Waiting]:
        """Provide a `Waiting` for the child, within `seconds` (None is no limit) and the deadline of the call.

        If the call is cancelled, kill the child and raise Stopped.
        """
        waiting = Waiting.within(seconds)
        with waiting.killing(self._expire, self.kill):
            yield waiting

    def _expire(self) -> None:
        self._timed_out = True
        self.kill()

    def _log_size(self) -> int:
        return os.fstat(self._log.fileno()).st_size

    def _tail(self, printed: int) -> str:
        """Return the end of the output after the first `printed` bytes of the log."""
        size = self._log_size()
        start = max(printed, size - _LOG_TAIL)
        if sys.platform == "win32":
            self._log.seek(start)
            data = self._log.read()
        else:
            data = os.pread(
                self._log.fileno(), size - start, start
            )  # the child writes where its own offset is
        return data.decode("utf-8", "replace")

    def _ended(self, waiting: Waiting, printed: int, stage: str = "") -> Ending:
        """Return the ending of a child that has closed its streams, or whose time is over."""
        try:
            # The streams close a moment before the process ends.
            code = self._process.wait(_CLOSING)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        log = self._tail(printed)
        if self._timed_out:
            return TimedOut(waiting.told, log, stage)
        # The kernel ends a process by SIGKILL if memory runs out.
        if -code == getattr(signal, "SIGKILL", 9) or names_lack_of_memory(log):
            return OutOfMemory(self.memory, log, stage)
        return crash_of(code, log, stage)


def crash_of(code: int, log: str = "", stage: str = "") -> Crashed:
    """Return the ending of a child that ended with this code, less than 0 for a signal, before it had answered."""
    if code == 0 and sys.platform != "win32" and signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        return Crashed("the system does not tell how, as this program ignores SIGCHLD", log, stage)
    return Crashed(signal.Signals(-code).name if code < 0 else f"exit code {code}", log, stage)


def _log_file() -> IO[bytes]:
    """Return a file without a name, in memory if no folder for temporary files is writable."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        if not hasattr(os, "memfd_create"):
            raise
        return open(os.memfd_create("onnx-migrate-log"), "w+b")


class Program(Supervised):
    """A running program that is not ours, in its `folder`: it takes requests as lines of JSON and answers each with one.

    `limits.memory` bounds its private writable memory, and that of the processes it starts, on systems with prlimit.
    `limits.seconds` is the time that one request may take. The folder, which has its temporary files, is removed on closing.
    Raises OSError if the command cannot be run.
    """

    def __init__(
        self, command: Sequence[str], limits: Limits, environment: Mapping[str, str] | None = None
    ) -> None:
        self._temporary = TemporaryFolder()
        self.folder = self._temporary.path
        own = dict.fromkeys(TEMPORARY, str(self.folder))
        self._command, self._environment = command, {**os.environ, **(environment or {}), **own}
        self._limits = limits
        self._printed = 0
        try:
            super().__init__(limits.memory)
        except OSError:
            # The process did not start, so nobody else removes its folder.
            self._temporary.remove()
            raise
        if limits.memory is not None:
            _limit_memory(self._process.pid, limits.memory)

    def _start(self) -> tuple[subprocess.Popen[bytes], Channel]:
        return self._run(self._command, self._environment, str(self.folder))

    def close(self) -> None:
        """End the program and remove its folder."""
        super().close()
        self._temporary.remove()

    def ask(self, request: Mapping[str, Any] | None) -> dict[str, Any] | Ending:
        """Send a request and return its answer, or the child's ending instead. None waits for a program that speaks first."""
        self._printed = self._log_size()
        with self._waiting(self._limits.seconds) as waiting:
            try:
                if request is not None:
                    self._channel.send(json.dumps(request).encode() + b"\n", waiting)
                line = self._channel.line(waiting)
                if line.endswith(b"\n"):
                    answer: dict[str, Any] = json.loads(line)
                    return answer
            except Expired:
                self._expire()
            except OSError:  # it has ended, and how is found out below
                pass
            return self._ended(waiting, self._printed)

    def printed(self) -> str:
        """Return the end of its output since the last request."""
        return self._tail(self._printed)


def _limit_memory(process: int, memory: int) -> None:
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):  # Linux has prlimit
        import resource

        hard = resource.prlimit(process, resource.RLIMIT_DATA)[1]
        soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.prlimit(process, resource.RLIMIT_DATA, (soft, hard))
