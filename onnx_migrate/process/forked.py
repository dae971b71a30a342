"""Short calls of native code in a copy of this process, which is made once and then takes one call after the other.

A `Worker` is a fresh interpreter and takes half a second to start: too long for onnx's shape inference, which a migration
calls a dozen times for some milliseconds each. A fork takes one or two, has imported what this process has, and shares its
memory. It is made on Linux alone, whose libc keeps the allocator usable in a fork of a process with threads; elsewhere a
Worker takes the calls.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import pickle
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from onnx_migrate.process.child import call
from onnx_migrate.process.copied import fork, keep_only
from onnx_migrate.process.endings import Crashed, Ending, OutOfMemory, Raised, TimedOut
from onnx_migrate.process.limits import data_size, limit_memory, memory_limit
from onnx_migrate.process.signals import STOPS
from onnx_migrate.process.worker import Worker

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

__all__ = ["call_in_fork"]


def call_in_fork(function: str, *args: object, seconds: float, memory: int, state: object = None) -> Ending:
    """Call `function` ("package.module:name") in a copy of this process and return how it ended.

    `memory` is in bytes, in addition to what the process has now. Arguments and the returned value must pickle; values that a
    module changed after the copy was made are not seen: another `state` than that of the call before, as where schemas were
    registered since, gets a new copy. So does the next call after one that did not end well.
    An exception of this process, as KeyboardInterrupt, ends the copy and propagates.
    """
    global _copy, _state
    with _lock:
        if _copy is not None and (_state != state or not _copy.alive):
            _copy.close()
            _copy = None
        _state = state
        if _copy is None:
            _copy = _Fork() if sys.platform == "linux" else Worker(memory, modules=["onnx"])
        ended: Ending | None = None
        try:
            if isinstance(_copy, Worker):  # whose memory stays limited as it was at the first call
                ended = _copy.call(function, *args, seconds=seconds)
            else:
                ended = _copy.call(function, args, seconds, memory)
        finally:
            if ended is None or isinstance(ended, (Crashed, TimedOut, OutOfMemory)):
                _copy.close()
                _copy = None
        return ended


_inherited: list[_Fork] = []
"""What a copy of a process has of its parent's. It is kept: its end would close a pipe whose number is another file's here."""


class _Fork:
    """A copy of this process that waits for calls; it ends when this process does."""

    def __init__(self) -> None:
        from multiprocessing.connection import Pipe  # takes milliseconds, which --help does not need

        self._pipe, theirs = Pipe()
        self._parent = os.getpid()
        self._process = fork(lambda: _serve(theirs))
        theirs.close()

    @property
    def alive(self) -> bool:
        """Whether the copy runs, and is this process's and not that of the one that this was forked from."""
        with contextlib.suppress(ChildProcessError):
            return self._parent == os.getpid() and os.waitpid(self._process, os.WNOHANG) == (0, 0)
        return False

    def call(self, function: str, args: tuple[object, ...], seconds: float, memory: int) -> Ending:
        deadline = time.monotonic() + seconds
        request = pickle.dumps((function, args, seconds, memory), pickle.HIGHEST_PROTOCOL)
        try:
            self._pipe.send_bytes(request)
            if not self._pipe.poll(max(0.0, deadline - time.monotonic())):
                return TimedOut(seconds)
            answer = self._pipe.recv_bytes()
        except (EOFError, OSError):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGTERM)  # where a pipe failed; else it has ended
            _, status = os.waitpid(self._process, 0)
            code = os.waitstatus_to_exitcode(status)
            if -code == signal.SIGALRM:
                return TimedOut(seconds)
            if -code == signal.SIGKILL:
                return OutOfMemory(memory)
            return Crashed(signal.Signals(-code).name if code < 0 else f"exit code {code}")
        ending: Ending = pickle.loads(answer)  # from our own copy alone
        return OutOfMemory(memory, ending.log) if isinstance(ending, OutOfMemory) else ending

    def close(self) -> None:
        """End the copy, whatever it does; that of the process which this one was forked from is left alone."""
        if self._parent != os.getpid():
            _inherited.append(self)
            return
        self._pipe.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if os.waitpid(self._process, os.WNOHANG) == (0, 0):
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)


def _serve(pipe: Connection) -> None:
    """Take calls until the parent closes its end, with an EOFError."""
    # A terminal sends SIGINT to all; the parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    keep_only(pipe.fileno())
    gc.disable()
    most = memory_limit()
    while True:
        function, args, seconds, memory = pickle.loads(pipe.recv_bytes())
        signal.setitimer(signal.ITIMER_REAL, seconds + 1)  # also where the parent has gone
        limit_memory(min(filter(None, (most, data_size() + memory))))
        ending = call(function, args)
        try:
            data = pickle.dumps(ending, pickle.HIGHEST_PROTOCOL)
        except MemoryError:
            data = pickle.dumps(OutOfMemory(memory))
        except Exception as error:  # the value does not pickle
            data = pickle.dumps(Raised(type(error).__name__, str(error)))
        pipe.send_bytes(data)
        signal.setitimer(signal.ITIMER_REAL, 0)


_lock = threading.Lock()
_copy: _Fork | Worker | None = None
_state: object = None


@atexit.register
def _end() -> None:
    if _copy is not None:
        _copy.close()
