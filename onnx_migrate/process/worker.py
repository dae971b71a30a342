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

from onnx_migrate.process.child import BOOT, ENDED, LEFT, READY, SAID, STAGE, Function, Listener, pack
from onnx_migrate.process.copied import CopiedProcess, may_copy
from onnx_migrate.process.endings import Ending, OutOfMemory
from onnx_migrate.process.supervised import Supervised

__all__ = ["Worker", "setting"]


def setting(threads: int | None = None) -> tuple[dict[str, str], str, list[str]]:
    """Return what a worker takes over from this process as it starts: variables, working folder and search path."""
    threads_of = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    folder = os.getcwd()
    return {**threads_of, **os.environ}, folder, [entry or folder for entry in sys.path]


class Worker(Supervised):
    """A child process for one call after another, until it is closed, or ends because of one.

    `memory` limits its private writable memory in bytes, for each call. `modules` are imported before the first call. `threads`
    is how many of them its numerical libraries shall use, unless the user says so (OMP_NUM_THREADS). On Linux it ends with the
    thread that made it.
    """

    def __init__(
        self, memory: int | None = None, modules: Sequence[str] = (), threads: int | None = None
    ) -> None:
        self.started = False
        """Whether the child has begun to take calls."""
        self.calls = 0
        """How many calls it has been given."""
        self.left = 0
        """How many bytes of memory it had more after the last call than before the first."""
        self._sound = True
        self._modules, self._copied = modules, threads is None and may_copy()
        environment, _, search = self.setting = setting(threads)
        super().__init__(
            [sys.executable, "-c", BOOT, str(os.getpid()), str(memory or ""), ",".join(modules), *search],
            environment,
            memory,
        )

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], *, in_folder: bool
    ) -> subprocess.Popen[bytes] | CopiedProcess:
        if self._copied:
            with self._log.open("ab") as log:
                return CopiedProcess(log.fileno(), self.folder, self.memory, self._modules)
        return super()._start(command, environment, in_folder=in_folder)

    @property
    def alive(self) -> bool:
        """Whether the worker can take another call."""
        return self._process.poll() is None and not self._timed_out

    @property
    def sound(self) -> bool:
        """Whether another call would find the worker as the first one did: the last one ended well, if there was one."""
        return self._sound and self.alive

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
        request = pack((function, args, self.memory))
        # Before the first call, why it does not start may stand there already.
        printed, stage = self._log_size() if self.started else 0, ""
        self.calls, self._sound = self.calls + 1, False
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
                    elif kind == LEFT:
                        self.left = value
                    elif kind == ENDED:
                        ending: Ending = value
                        self._sound = not isinstance(ending, OutOfMemory)
                        if isinstance(ending, OutOfMemory):
                            return replace(ending, limit=self.memory, log=ending.log or self._tail(printed))
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
