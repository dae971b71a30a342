"""Runs short calls of native code in copies of this process; each copy takes one call after the other.

A `Worker` is a fresh interpreter and takes half a second to start. That is too long for onnx's shape inference, which a
migration calls a dozen times for some milliseconds each. A fork takes one or two milliseconds, has the imports of this process,
and shares its memory. Only Linux gets forks: its libc keeps the allocator usable in a fork of a process with threads. On other
systems a Worker takes the calls. So it does at the end of the interpreter, which then refuses forks. Each call has a copy to
itself: none waits for another.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import pickle
import signal
import socket
import sys

from onnx_migrate.process.cancellation import check_cancelled
from onnx_migrate.process.channel import LENGTH, SocketChannel
from onnx_migrate.process.child import call, framed
from onnx_migrate.process.copied import ForkedProcess, keep_only
from onnx_migrate.process.deadline import bounded_own_work
from onnx_migrate.process.endings import Crashed, Ending, OutOfMemory, Raised, TimedOut
from onnx_migrate.process.limits import data_size, limit_memory, memory_limit
from onnx_migrate.process.refusals import starting
from onnx_migrate.process.signals import STOPS
from onnx_migrate.process.starters import in_lasting_thread
from onnx_migrate.process.supervised import crash_of
from onnx_migrate.process.waiting import Expired, Waiting
from onnx_migrate.process.worker import Worker

__all__ = ["call_in_fork"]

_most_kept = max(2, os.cpu_count() or 1)
"""Maximum number of idle copies: as many as can compute at the same time."""

_LONGEST = 1e8
"""Maximum seconds of a timer of the system."""


def call_in_fork(function: str, *args: object, seconds: float, memory: int, state: object = None) -> Ending:
    """Call `function` ("package.module:name") in a copy of this process and return how it ended.

    `memory` is in bytes, in addition to the present memory of the process. Arguments and the returned value must pickle. A copy
    does not see values that a module changed after the copy was made. So a `state` that differs from that of the call before
    gets a new copy, for example after schemas were registered. After a call that did not end well, the next call gets a new
    copy too. The call takes at most half of the time that remains for the whole. An exception of this process, such as
    KeyboardInterrupt, ends the copy and propagates. Raises Stopped, and MigrateError, code `no-process`.
    """
    check_cancelled()
    allowed = bounded_own_work(seconds)
    if allowed <= 0:
        return TimedOut(seconds)
    copy = _taken(state) or _started(memory)
    ending: Ending | None = None
    try:
        if isinstance(copy, Worker):  # the memory limit of the first call stays
            ending = copy.call(function, *args, seconds=allowed)
        else:
            ending = copy.call(function, args, allowed, memory)
    finally:
        if ending is None or isinstance(ending, (Crashed, TimedOut, OutOfMemory)):
            copy.close()
        else:
            _keep(copy, state)
    return ending


class _Copy:
    """A copy of this process that takes calls; Linux ends it with the thread that made it."""

    def __init__(self) -> None:
        self._channel = SocketChannel()
        try:
            self._process = ForkedProcess(lambda: _serve(self._channel.theirs))
        except BaseException:
            self._channel.close()
            raise
        self._channel.theirs.close()

    @property
    def alive(self) -> bool:
        """Whether the copy runs."""
        return self._process.poll() is None

    def call(self, function: str, args: tuple[object, ...], seconds: float, memory: int) -> Ending:
        """Call the function and return how it ended. Raises Stopped."""
        waiting = Waiting(seconds, seconds)
        try:
            self._channel.send(framed((function, args, seconds, memory)), waiting)
            ending: Ending = pickle.loads(self._channel.message(waiting))  # from our own copy alone
        except Expired:
            return TimedOut(seconds)
        except (EOFError, OSError):
            return self._ended(seconds, memory)
        return OutOfMemory(memory, ending.log) if isinstance(ending, OutOfMemory) else ending

    def _ended(self, seconds: float, memory: int) -> Ending:
        code = self._process.wait()
        if -code == signal.SIGALRM:
            return TimedOut(seconds)
        return OutOfMemory(memory) if -code == signal.SIGKILL else crash_of(code)

    def close(self) -> None:
        """End the copy, even during a call."""
        self._process.kill()
        self._process.wait()
        self._channel.close()


def _serve(calls: socket.socket) -> None:
    """Take calls until the parent closes its end."""
    # A terminal sends SIGINT to all; the parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    keep_only(calls.fileno())
    gc.disable()
    most = memory_limit()
    with calls.makefile("rb") as requests:
        while head := requests.read(LENGTH.size):
            function, args, seconds, memory = pickle.loads(requests.read(LENGTH.unpack(head)[0]))
            # Also where the parent cannot end this process any more.
            signal.setitimer(signal.ITIMER_REAL, min(seconds + 1, _LONGEST))
            limit_memory(min(filter(None, (most, data_size() + memory))))
            calls.sendall(_answer(call(function, args), memory))
            signal.setitimer(signal.ITIMER_REAL, 0)


def _answer(ending: Ending, memory: int) -> bytes:
    try:
        return framed(ending)
    except MemoryError:
        return framed(OutOfMemory(memory))
    except Exception as error:  # the value does not pickle
        return framed(Raised(type(error).__name__, str(error)))


_kept: list[tuple[object, _Copy | Worker]] = []
"""The idle copies, each with the state of this process in which it was made. No lock is needed: a call takes one out."""


def _taken(state: object) -> _Copy | Worker | None:
    """Take out a kept copy; close copies that have ended or were made in another state."""
    while True:
        try:
            made_in, copy = _kept.pop()
        except IndexError:
            return None
        if made_in == state and copy.alive:
            return copy
        copy.close()


def _started(memory: int) -> _Copy | Worker:
    """Return a new copy. Raises MigrateError, code `no-process`, if the system starts no process."""
    with starting():
        if sys.platform == "linux":
            with contextlib.suppress(RuntimeError):  # of Python 3.12 and newer, at the end of the interpreter
                return in_lasting_thread(_Copy)
        return in_lasting_thread(lambda: Worker(memory, modules=["onnx"]))


def _keep(copy: _Copy | Worker, state: object) -> None:
    if len(_kept) < _most_kept:
        _kept.append((state, copy))
    else:
        copy.close()


@atexit.register
def _end() -> None:
    """Close the copies. Functions that `atexit` calls later get one for each call."""
    global _most_kept
    _most_kept = 0
    _close_kept()


def _close_kept() -> None:
    while _kept:
        _kept.pop()[1].close()


def _forget_parents() -> None:
    """Leave the copies of the parent to it, in a fork."""
    _inherited.extend(_kept)
    _kept.clear()


_inherited: list[object] = []
"""The parent's copies, as a fork inherits them.

The fork keeps these objects: their finalizers would wait for a process that is another's child.
"""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)
