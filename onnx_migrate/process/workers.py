"""Workers that are kept between calls, so that a call does not wait for an interpreter to start.

A worker serves only calls from the setting that it was started in: environment, working folder and search path. One that a call
ended, that reached its limit of memory, or that keeps much memory is replaced. `run` and batches take their workers from here.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from onnx_migrate.errors import Cancelled
from onnx_migrate.process.cancellation import Stopped
from onnx_migrate.process.child import Listener, call
from onnx_migrate.process.deadline import bounded
from onnx_migrate.process.endings import Crashed, Ending, OutOfMemory, TimedOut
from onnx_migrate.process.limits import Limits
from onnx_migrate.process.refusals import starting
from onnx_migrate.process.signals import start_blocked
from onnx_migrate.process.starters import in_lasting_thread
from onnx_migrate.process.worker import Worker, setting

__all__ = ["Workers", "current_workers", "run", "using"]

_IDLE_SECONDS = 60.0
"""How long the workers of no session are kept without a call."""

_MOST_LEFT = 256 << 20
"""Limit of a worker's memory growth since its first call, in bytes, including imported libraries. A worker above it ends."""


class Workers:
    """Kept workers, which threads may share. One that has no call for `idle` seconds is ended; at most `most` are kept."""

    def __init__(self, idle: float | None = None, most: int | None = None) -> None:
        self._idle, self._most = idle, most or 2 * max(2, os.cpu_count() or 1)
        self._forget()
        _all.add(self)

    def _forget(self) -> None:
        """Begin with no workers."""
        self._lock = threading.Lock()  # of the fields below
        self._waiting: list[tuple[Worker, float]] = []
        self._taken: set[Worker] = set()
        self._timer: threading.Timer | None = None
        self.closed = False
        """Whether these workers are closed, so that no worker is kept."""

    @contextmanager
    def borrowed(
        self,
        memory: int | None = None,
        modules: Sequence[str] = (),
        threads: int | None = None,
        *,
        keep: bool = True,
        fresh: bool = False,
    ) -> Iterator[Worker]:
        """Provide a worker for this block only: a kept one, unless it must be `fresh`, or a new one.

        The other arguments are those of `Worker`. `keep` says whether it may be kept afterwards. A call that an exception ends in
        this process ends the worker.
        """
        worker = None if fresh else self._take(setting(threads))
        if worker is None:
            with starting():  # a thread too, in which the worker lasts
                worker = in_lasting_thread(lambda: Worker(memory, modules, threads))
        worker.memory = memory
        with self._lock:
            self._taken.add(worker)
            if self.closed:
                worker.kill()
        try:
            yield worker
        finally:
            self._give_back(worker, keep=keep)

    def _take(self, wanted: object) -> Worker | None:
        ended = []
        with self._lock:
            for index in range(len(self._waiting) - 1, -1, -1):
                worker = self._waiting[index][0]
                if not worker.alive:
                    ended.append(self._waiting.pop(index)[0])
                elif worker.setting == wanted:
                    del self._waiting[index]
                    break
            else:
                worker = None
        # Outside the lock, because closing waits for the process.
        for other in ended:
            other.close()
        return worker

    def _give_back(self, worker: Worker, *, keep: bool) -> None:
        keep = keep and worker.sound and worker.left <= _MOST_LEFT
        with self._lock:
            if worker not in self._taken:  # this is a fork of the process that took it
                return
            self._taken.remove(worker)
            if keep and not self.closed:
                self._waiting.append((worker, time.monotonic()))
                ended = [self._waiting.pop(0)[0]] if len(self._waiting) > self._most else []
                ended += self._watch()
            else:
                ended = [worker]
        for other in ended:
            other.close()

    def _watch(self) -> list[Worker]:
        """Wait in a thread for the next worker that has been idle for too long; with the lock held.

        Return the workers to end; these are all workers if the system starts no thread.
        """
        if self._idle is None or self._timer is not None or not self._waiting:
            return []
        wait = self._waiting[0][1] + self._idle - time.monotonic()
        timer = threading.Timer(max(0.0, wait), self._end_idle)
        timer.daemon = True
        try:
            start_blocked(timer)
        except RuntimeError:  # too many threads, or the interpreter ends
            ended, self._waiting = self._waiting, []
            return [worker for worker, _ in ended]
        self._timer = timer
        return []

    def _end_idle(self) -> None:
        with self._lock:
            before = time.monotonic() - (self._idle or 0.0)
            ended = [worker for worker, since in self._waiting if since <= before]
            self._waiting = [entry for entry in self._waiting if entry[1] > before]
            self._timer = None
            ended += self._watch()
        for worker in ended:
            worker.close()

    def clear(self) -> None:
        """End the workers that have no call."""
        with self._lock:
            ended, self._waiting = self._waiting, []
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        for worker, _ in ended:
            worker.close()

    def retire(self) -> None:
        """End all workers, as the interpreter ends. Functions that `atexit` calls later get one for each call."""
        with self._lock:
            self._most = 0
            for worker in self._taken:
                worker.kill()
        self.clear()

    def close(self) -> None:
        """End all workers, even busy ones, and keep no new ones."""
        with self._lock:
            self.closed = True
            for worker in self._taken:  # whoever took it closes it
                worker.kill()
        self.clear()


def run(
    function: str,
    *args: object,
    limits: Limits | None = None,
    isolated: bool = True,
    listen: Listener | None = None,
    worker: Worker | None = None,
    keep: bool = True,
) -> Ending:
    """Call `function` ("package.module:name") with `args` in a child process and return how it ended.

    Arguments and the returned value must pickle. `isolated=False` makes the call in this process: with the same endings,
    without the limits and without protection from crashes. KeyboardInterrupt kills the child and propagates. `listen` gets the
    texts that the function says meanwhile (`say`). The call is made in `worker`, if it still works, else in one of this
    thread's `current_workers`, which is kept unless `keep` is false. If a call ends a worker that made other calls before, a
    new worker repeats the call, so that earlier calls cannot be the cause. All of that shares the deadline of the current call.
    Raises Stopped if another thread closes these workers meanwhile.
    """
    if not isolated:
        return call(function, args, listen)
    limits, workers = limits or Limits(), current_workers()
    remaining, stated_limit = bounded(limits.seconds)
    if remaining is not None and remaining <= 0:
        return TimedOut(stated_limit)

    def attempt(worker: Worker) -> tuple[Ending, bool]:
        # A worker without earlier calls failed by this call alone.
        had_others = worker.calls > 0
        ending = worker.call(function, *args, seconds=limits.seconds, listen=listen)
        # The session was closed by another thread, so the ending is no crash.
        if workers.closed and not worker.alive:
            raise Stopped(Cancelled("the session was closed during the call, and nothing was written"))
        return ending, had_others and isinstance(ending, (Crashed, OutOfMemory))

    if worker is not None and worker.sound:
        worker.memory = limits.memory
        ending, again = attempt(worker)
    else:
        with workers.borrowed(limits.memory, keep=keep) as worker:
            ending, again = attempt(worker)
    # A new worker shows whether earlier calls were the cause.
    if again:
        with workers.borrowed(limits.memory, keep=keep, fresh=True) as worker:
            ending, _ = attempt(worker)
    return ending


def current_workers() -> Workers:
    """Return the workers of this thread's session; without a session those of this process, which end with it."""
    global _default
    workers = _current.get()
    if workers is not None:
        return workers
    with _making:
        if _default is None:
            _default = Workers(_IDLE_SECONDS)
            atexit.register(_default.retire)
            if "multiprocessing.util" in sys.modules:  # whose processes end without atexit
                from multiprocessing.util import Finalize

                Finalize(None, _default.retire, exitpriority=0)
        return _default


@contextmanager
def using(workers: Workers) -> Iterator[None]:
    """Make all calls of the block in these workers."""
    before = _current.set(workers)
    try:
        yield
    finally:
        _current.reset(before)


_current: ContextVar[Workers | None] = ContextVar("onnx_migrate_workers", default=None)
_all: weakref.WeakSet[Workers] = weakref.WeakSet()
_making = threading.Lock()
_default: Workers | None = None
_inherited: list[object] = []
"""The parent's workers, as a fork inherits them.

The fork keeps these objects: their finalizers would close a pipe, and the fork may use its number for another file.
"""


def _forget_parents() -> None:
    """Leave the workers of the parent to it, in a fork."""
    global _making, _default
    _making, _default = threading.Lock(), None
    for workers in list(_all):
        _inherited.extend((*workers._waiting, *workers._taken))
        workers._forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parents)
