"""The parent process's side: starts a child, sends it calls, and kills it when a call takes too long.

The child is a fresh interpreter (`subprocess`, not multiprocessing), or for the command line a copy of this one (copied.py),
in a session of its own, so Ctrl-C in a terminal reaches the parent alone. Its temporary files and its log lie in a folder
that is removed with it.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnx_migrate.process.child import BOOT, ENDED, READY, SAID, STAGE, Function, Listener, call, pack
from onnx_migrate.process.copied import CopiedProcess, may_copy
from onnx_migrate.process.endings import Ending, OutOfMemory
from onnx_migrate.process.limits import Limits
from onnx_migrate.process.supervised import Supervised

__all__ = ["Worker", "run"]


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
        return call(function, args, listen)
    limits = limits or Limits()
    if worker is not None and worker.alive:
        return worker.call(function, *args, seconds=limits.seconds, listen=listen)
    with Worker(limits.memory) as worker:
        return worker.call(function, *args, seconds=limits.seconds, listen=listen)


class Worker(Supervised):
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
        self._modules, self._copied = modules, threads is None and may_copy()
        search = [entry or os.getcwd() for entry in sys.path]
        threads_of = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
        super().__init__(
            [sys.executable, "-c", BOOT, str(os.getpid()), str(memory or ""), ",".join(modules), *search],
            {**threads_of, **os.environ},
            memory,
        )

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], *, in_folder: bool
    ) -> subprocess.Popen[bytes] | CopiedProcess:
        if self._copied:
            with self._log.open("ab") as log:
                return CopiedProcess(log.fileno(), self.folder, self._memory, self._modules)
        return super()._start(command, environment, in_folder=in_folder)

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
    ) -> Ending:
        """Call a function in the child and return how it ended; after `seconds` the child is killed.

        `listen` gets what the function says, in the thread that made the call.

        Raises what pickle raises for arguments that do not pickle.
        """
        request = pack((function, args))
        # Before the first call, why it does not start may stand there already.
        printed, stage = self._log_size() if self.started else 0, ""
        with self._killed_after(seconds):
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
                return self._ended(seconds, printed, stage)

    def _write(self, request: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(request)
        self._process.stdin.flush()

    def _read(self) -> tuple[str, Any]:
        assert self._process.stdout is not None
        message: tuple[str, Any] = pickle.load(self._process.stdout)  # only our own child can write to it
        return message
