"""Worker processes on this machine, each given one model after the other, and replaced when one brings it down."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any

from pebble import ProcessPool

from onnx_migrate.isolate import limit_memory
from onnx_migrate.signals import blocked

__all__ = ["LocalPool"]

LOG_TAIL = 2000
"""How many bytes of what a worker printed are kept for messages."""


class _Process(SpawnProcess):
    """A fresh interpreter that does not import the caller's `__main__`, so that scripts need no guard.

    It is deaf to Ctrl-C from its first moment, which a terminal sends to all: the parent ends the workers.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            with blocked(signal.SIGINT):
                return SpawnProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"] = main


class _Context(SpawnContext):
    Process = _Process


class LocalPool(Executor):
    """`jobs` workers. A call that takes more than `timeout` seconds, or crashes, ends its worker and no other.

    `memory_limit` is in bytes of private writable memory, for each worker. A worker is given up after `recycle`
    calls. What workers print goes to files, of which `log` gives the last lines.
    """

    def __init__(
        self, jobs: int, *, timeout: float | None = None, memory_limit: int | None = None, recycle: int = 0
    ) -> None:
        self.timeout = timeout
        self._folder = tempfile.TemporaryDirectory(prefix="onnx-migrate-", ignore_cleanup_errors=True)
        self._pool = ProcessPool(
            max_workers=jobs,
            max_tasks=recycle,
            initializer=_start,
            initargs=(self._folder.name, memory_limit, os.getpid()),
            context=_Context(),
        )

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Schedule a call with the pool's time limit."""
        return self.schedule(fn, *args, timeout=self.timeout, **kwargs)

    def schedule(
        self, fn: Callable[..., Any], *args: Any, timeout: float | None, **kwargs: Any
    ) -> Future[Any]:
        """Schedule a call with a time limit of its own.

        The future raises TimeoutError past it, and pebble.ProcessExpired when the worker ends. Raises RuntimeError
        when workers end before they have begun, as with too little memory.
        """
        if not self.alive():
            logs = sorted(Path(self._folder.name).glob("*.log"), key=os.path.getmtime)
            last = self.log(int(logs[-1].stem)).strip().rpartition("\n")[2] if logs else ""
            raise RuntimeError("worker processes end as they start" + (f": {last}" if last else ""))
        future: Future[Any] = self._pool.schedule(fn, args=args, kwargs=kwargs, timeout=timeout)
        return future

    def alive(self) -> bool:
        """Tell whether futures will be settled. Of a pool that broke, pebble leaves those open that it still had."""
        return bool(self._pool.active)

    def log(self, pid: int) -> str:
        """Return the last of what a worker printed."""
        path = Path(self._folder.name, f"{pid}.log")
        return path.read_bytes()[-LOG_TAIL:].decode("utf-8", "replace") if path.exists() else ""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers: when all is done, or, with `cancel_futures`, at once, whatever they do."""
        (self._pool.stop if cancel_futures else self._pool.close)()  # type: ignore[no-untyped-call]
        if wait:
            self._pool.join()
            self._folder.cleanup()


def _start(folder: str, memory_limit: int | None, parent: int) -> None:
    """Make this process a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tempfile.tempdir = os.environ["TMPDIR"] = folder  # so that what a killed worker leaves is cleared away
    log = os.open(os.path.join(folder, f"{os.getpid()}.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    if memory_limit is not None:
        limit_memory(memory_limit)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    """End with the parent, also when that was killed; PR_SET_PDEATHSIG would follow the thread that forked."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
