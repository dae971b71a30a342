"""A child process that is a copy of this one instead of a fresh interpreter: it has the imports of this process.

A start of Python with onnx and NumPy takes 0.2 s of processor time, a fork some milliseconds. Only the process of our own
command line may be copied (`allow_copies`). A program that uses the library may have loaded something that does not work in a
fork, such as OpenMP's threads or a GPU's driver.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import IO, TYPE_CHECKING

from onnx_migrate.process.child import die_with, serve
from onnx_migrate.process.limits import data_size
from onnx_migrate.process.signals import STOPS, blocked

if TYPE_CHECKING:
    import socket

__all__ = ["CopiedProcess", "ForkedProcess", "allow_copies", "fork", "keep_only", "may_copy"]

_MOST_DATA = 256 << 20
"""Limit of private memory, in bytes. A process with more is not copied: its memory would count for the child's limit."""

_PAUSE = 0.01
"""Seconds between two checks whether a child has ended, if the wait has a limit."""

_allowed = False


def allow_copies() -> None:
    """Let the workers of this process be copies of it, if the system can copy it safely."""
    global _allowed
    _allowed = sys.platform == "linux"


def may_copy() -> bool:
    """Return whether a worker may be a copy of this process: only while it has one thread and is small."""
    return _allowed and threading.active_count() == 1 and data_size() <= _MOST_DATA


class ForkedProcess:
    """A copy of this process that calls `serve` and ends, with the methods of subprocess.Popen that `Supervised` uses.

    Linux ends it with the thread that made it. Raises OSError, and RuntimeError at the end of the interpreter.
    """

    def __init__(self, serve: Callable[[], None]) -> None:
        self.returncode: int | None = None
        self.pid = fork(serve)

    def poll(self) -> int | None:
        """Return the exit code, less than 0 for a signal, or None while the child runs."""
        if self.returncode is None:
            self._reap(os.WNOHANG)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            self._reap(os.WNOHANG if end is not None else 0)
            if end is not None and self.returncode is None:
                if time.monotonic() > end:
                    raise subprocess.TimeoutExpired("onnx-migrate", timeout or 0.0)
                time.sleep(_PAUSE)
        return self.returncode

    def kill(self) -> None:
        """End the child."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _reap(self, flags: int) -> None:
        with contextlib.suppress(ChildProcessError):
            process, status = os.waitpid(self.pid, flags)
            if process:
                self.returncode = os.waitstatus_to_exitcode(status)
            return
        self.returncode = 0  # something else has waited for it, or the system does where SIGCHLD is ignored


class CopiedProcess(ForkedProcess):
    """A copy of this process that takes calls (`child.serve`), in a session of its own.

    It reads calls from the socket, and answers there; it prints to the open file `log`.
    """

    def __init__(
        self, calls: socket.socket, log: IO[bytes], memory: int | None, modules: Sequence[str]
    ) -> None:
        arguments = str(os.getpid()), str(memory or ""), ",".join(modules)
        # A standard stream that this process has closed may have lent its number to the log.
        super().__init__(lambda: _serve(calls.fileno(), os.dup(log.fileno()), arguments))


def _serve(calls: int, log: int, arguments: tuple[str, str, str]) -> None:
    """Become a worker: drop the state that a fresh interpreter would not have."""
    os.setsid()
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, file in enumerate((calls, calls, log)):
        os.dup2(file, number)
    keep_only(0, 1, 2)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    gc.freeze()
    gc.enable()
    Context().run(serve, *arguments)


def fork(serve: Callable[[], None]) -> int:
    """Return the process id of a copy of this process, which calls `serve` and ends.

    In the copy, SIGTERM and SIGALRM end the process, and no timer runs. The signals of `STOPS` stay blocked until `serve`
    unblocks them, so no handler of this process runs in the copy. Linux kills the copy when this thread ends. Raises OSError,
    and RuntimeError at the end of the interpreter.
    """
    import ctypes  # noqa: F401 - for `die_with`: a copy imports nothing, as another thread may hold the lock of an import

    parent = os.getpid()
    with blocked(*STOPS):
        _expect_fork()
        process = os.fork()
        if process:
            return process
        try:
            for number in (signal.SIGTERM, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, 0)
            die_with(parent)
            serve()
        finally:
            os._exit(1)


def _expect_fork() -> None:
    """Let Python 3.12 and newer not warn of the fork in this module, since the copy uses no lock of another thread.

    The filter stays: `warnings.catch_warnings` would exchange the filters of all threads.
    """
    if sys.version_info >= (3, 12):
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=re.escape(__name__))


def keep_only(*files: int) -> None:
    """Close all other files, so that no pipe of the parent stays open here when the parent closes it."""
    with open(os.devnull, "r+b", buffering=0) as nothing:
        for standard in {0, 1, 2}.difference(files):
            os.dup2(nothing.fileno(), standard)
    for file in _open_files():
        if file > 2 and file not in files:
            with contextlib.suppress(OSError):  # the folder that was listed is closed already
                os.close(file)


def _open_files() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:  # not mounted; the limit of open files may be a billion
        return list(range(3, min(os.sysconf("SC_OPEN_MAX"), 65536)))
