"""The parent process's side: starts a child, sends it calls, and kills it when a call takes too long.

The child is a fresh interpreter (`subprocess`, not multiprocessing) in a session of its own, so Ctrl-C in a terminal
reaches the parent alone. Its temporary files and its log lie in a folder that is removed with it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx_migrate.isolate.child import BOOT, ENDED, READY, SAID, STAGE, Function, Listener, call, pack
from onnx_migrate.isolate.endings import Crashed, Ending, OutOfMemory, TimedOut, names_lack_of_memory
from onnx_migrate.isolate.limits import Limits

__all__ = ["Worker", "run"]

LOG_TAIL = 4000
"""How many bytes of what the child printed are kept for messages."""

_CLOSING = 5.0
"""Seconds that a child which closed its streams may take to end before it is killed."""


def run(
    function: str,
    *args: object,
    limits: Limits | None = None,
    isolated: bool = True,
    listen: Listener | None = None,
    worker: Worker | None = None,
) -> Ending:
    """Call `function` ("package.module:name") with `args` in a child process of its own and return how it ended.

    Arguments and the returned value must pickle. With `isolated=False` the call is made in this process: the same
    endings, without the limits and without protection from crashes. KeyboardInterrupt kills the child and propagates.
    `listen` gets what the function says on the way (`say`). If `worker` is alive, it takes the call, under its own limit of
    memory.
    """
    if not isolated:
        return call(function, args, {}, listen)
    limits = limits or Limits()
    if worker is not None and worker.alive:
        return worker.call(function, *args, seconds=limits.seconds, listen=listen)
    with Worker(limits.memory) as worker:
        return worker.call(function, *args, seconds=limits.seconds, listen=listen)


class Worker:
    """A child process for one call after another, until it is closed, or ends because of one.

    `memory` limits its private writable memory in bytes. `modules` are imported before the first call. `threads`
    is how many of them its numerical libraries shall use, unless the user says so (OMP_NUM_THREADS). Must be closed by the
    thread that made it.
    """

    def __init__(
        self, memory: int | None = None, modules: Sequence[str] = (), threads: int | None = None
    ) -> None:
        self.started = False
        """Whether the child has begun to take calls."""
        self._memory = memory
        self._timed_out = False
        self._folder = tempfile.TemporaryDirectory(prefix="onnx-migrate-", ignore_cleanup_errors=True)
        self._log = Path(self._folder.name, "log")
        search = [entry or os.getcwd() for entry in sys.path]
        threads_of = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", BOOT, str(os.getpid()), str(memory or ""), ",".join(modules), *search],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                env={**threads_of, **os.environ, "TMPDIR": self._folder.name},
            )

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Whether the worker can take another call."""
        return self._process.poll() is None and not self._timed_out

    def call(
        self,
        function: Function,
        /,
        *args: object,
        seconds: float | None = None,
        listen: Listener | None = None,
        **kwargs: object,
    ) -> Ending:
        """Call a function in the child and return how it ended; after `seconds` the child is killed.

        `listen` gets what the function says, in the thread that made the call.

        Raises what pickle raises for arguments that do not pickle.
        """
        request = pack((function, args, kwargs))
        printed = self._log.stat().st_size
        timer = threading.Timer(seconds or 0.0, self._expire)
        timer.daemon = True
        if seconds is not None:
            timer.start()
        stage = ""
        try:
            self._write(request)
            while True:
                kind, value = self._read()
                if kind == READY:
                    self.started = True
                elif kind == STAGE:
                    stage = value
                elif kind == SAID and listen is not None:
                    listen(value)
                elif kind == ENDED:
                    ending: Ending = value
                    if isinstance(ending, OutOfMemory):
                        return replace(ending, limit=self._memory, log=ending.log or self._tail(printed))
                    return ending
        except (EOFError, pickle.UnpicklingError, OSError):
            return self._ended(seconds, stage, printed)
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the child and what it started, whatever they do; may be called by any thread."""
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS refuses where all have ended
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    def close(self) -> None:
        """End the child and remove its files."""
        self.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # a request that was not read is given up
                stream.close()  # type: ignore[union-attr]
        self._folder.cleanup()

    def _expire(self) -> None:
        self._timed_out = True
        self.kill()

    def _write(self, request: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(request)
        self._process.stdin.flush()

    def _read(self) -> tuple[str, Any]:
        assert self._process.stdout is not None
        message: tuple[str, Any] = pickle.load(self._process.stdout)  # only our own child can write to it
        return message

    def _ended(self, seconds: float | None, stage: str, printed: int) -> Ending:
        try:
            code = self._process.wait(_CLOSING)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._process.wait()
        log = self._tail(printed)
        if self._timed_out:
            return TimedOut(seconds or 0.0, log, stage)
        if -code == getattr(signal, "SIGKILL", 9) or names_lack_of_memory(log):
            return OutOfMemory(self._memory, log, stage)
        return Crashed(signal.Signals(-code).name if code < 0 else f"exit code {code}", log, stage)

    def _tail(self, printed: int) -> str:
        """Return the end of what was printed after the first `printed` bytes of the log."""
        with self._log.open("rb") as file:
            file.seek(max(printed, file.seek(0, os.SEEK_END) - LOG_TAIL))
            return file.read().decode("utf-8", "replace")
