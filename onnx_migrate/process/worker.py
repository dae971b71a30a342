"""The parent process's side: starts a child, sends it calls, and kills it when a call takes too long.

The child is a fresh interpreter (`subprocess`, not multiprocessing), or for the command line a copy of this process
(copied.py). It has a session of its own, so Ctrl-C in a terminal reaches only the parent. Each call has a temporary folder,
which is removed with it. A waiting child has no such folder, so a signal that ends this process leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from onnx_migrate.process.channel import Channel, SocketChannel
from onnx_migrate.process.child import BOOT, ENDED, LEFT, READY, SAID, STAGE, Function, Listener, pack
from onnx_migrate.process.copied import CopiedProcess, may_copy
from onnx_migrate.process.endings import Ending, OutOfMemory
from onnx_migrate.process.interpreter import interpreter
from onnx_migrate.process.refusals import no_interpreter, starting
from onnx_migrate.process.supervised import Supervised
from onnx_migrate.process.temporary import TemporaryFolder
from onnx_migrate.process.waiting import Expired, Waiting

__all__ = ["Worker", "setting"]


def setting(threads: int | None = None) -> tuple[dict[str, str], str, list[str]]:
    """Return the settings that a worker inherits from this process at its start: variables, working folder and search path.

    The folder is "" if somebody has deleted it: then nothing can be imported from it.
    """
    threads_of = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    try:
        folder = os.getcwd()
    except OSError:
        folder = ""
    search = (entry or folder for entry in sys.path)
    return {**threads_of, **os.environ}, folder, list(filter(None, search))


class Worker(Supervised):
    """A child process for one call after another, until it is closed, or a call ends it.

    `memory` limits its private writable memory in bytes, for each call. `modules` are imported before the first call. `threads`
    is how many of them its numerical libraries shall use, unless the user says so (OMP_NUM_THREADS). On Linux it ends with the
    thread that made it. Raises MigrateError, code `no-process`, where the system starts no process.
    """

    def __init__(
        self, memory: int | None = None, modules: Sequence[str] = (), threads: int | None = None
    ) -> None:
        self.started = False
        """Whether the child has begun to take calls."""
        self.calls = 0
        """How many calls it has been given."""
        self.left = 0
        """The growth of its memory from the first call to the end of the last one, in bytes."""
        self._sound = True
        self._modules, self.setting = modules, setting(threads)
        self._python = None if threads is None and may_copy() else interpreter()
        if self._python is None and sys.platform != "linux":
            raise no_interpreter()
        with starting():
            super().__init__(memory)

    def _start(self) -> tuple[subprocess.Popen[bytes] | CopiedProcess, Channel]:
        environment, folder, search = self.setting
        if self._python is None:
            channel = SocketChannel()
            try:
                copy = CopiedProcess(channel.theirs, self._log, self.memory, self._modules)
            finally:
                channel.theirs.close()
            return copy, channel
        modules = ",".join(self._modules)
        command = [self._python, "-c", BOOT, str(os.getpid()), str(self.memory or ""), modules, *search]
        # Python would not start in a folder that is deleted.
        return self._run(command, environment, None if folder else os.path.abspath(os.sep))

    @property
    def alive(self) -> bool:
        """Whether the worker can take another call."""
        return self._process.poll() is None and not self._killed  # which takes a moment

    @property
    def sound(self) -> bool:
        """Whether the worker is still fit for another call: the last call ended well, if there was one."""
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

        `listen` gets the function's texts, in the thread that made the call.

        Raises the errors of pickle for arguments that do not pickle.
        """
        # Before the first call, why it does not start may stand there already.
        printed, stage = self._log_size() if self.started else 0, ""
        with _temporary_folder() as folder, self._waiting(seconds) as waiting:
            request = pack((function, args, self.memory, folder))
            self.calls, self._sound = self.calls + 1, False
            try:
                self._channel.send(request, waiting)
                while True:
                    kind, value = self._message(waiting)
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
            except Expired:
                self._expire()
            except (EOFError, pickle.UnpicklingError, OSError):
                pass  # it has ended, and how is found out below
            return self._ended(waiting, printed, stage)

    def _message(self, waiting: Waiting) -> tuple[str, Any]:
        message: tuple[str, Any] = pickle.loads(self._channel.message(waiting))  # from our own child alone
        return message


@contextlib.contextmanager
def _temporary_folder() -> Iterator[str]:
    """Provide a folder for the temporary files of one call; "" if none can be made, as few calls need it."""
    try:
        folder = TemporaryFolder()
    except OSError:
        yield ""
        return
    with folder as path:
        yield str(path)
