"""Runs a function of this package in a child process, where native code may crash, hang or eat memory.

The child is a fresh interpreter (`subprocess`, not multiprocessing: the caller's `__main__` is never
imported, so
scripts need no guard). Request and result travel as pickles in a temporary directory; whatever the child
prints, on either stream, goes to a file of which messages show the tail. The child dies with its parent.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx_migrate.errors import MigrateError

__all__ = [
    "Crashed",
    "Ending",
    "Limits",
    "OutOfMemory",
    "Raised",
    "Returned",
    "TimedOut",
    "limit_memory",
    "mark",
    "run",
]

LOG_TAIL = 4000
"""How many bytes of what the child printed are kept for messages."""

_OUT_OF_MEMORY = (
    "MemoryError",
    "bad_alloc",
    "bad allocation",
    "Failed to allocate memory",
    "Cannot allocate memory",
)

_BOOT = (
    "import sys; sys.path[:] = sys.argv[3:]; from onnx_migrate.isolate import _child; _child(*sys.argv[1:3])"
)


def _most_of_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4
    except (AttributeError, ValueError, OSError):
        return None


@dataclass(frozen=True)
class Limits:
    """What a child may use: wall-clock seconds, and bytes of private writable memory; None is no limit.

    Memory is limited with RLIMIT_DATA, which Linux enforces on all private writable mappings. Both it and
    RLIMIT_AS
    work with ONNX Runtime's threads; RLIMIT_AS also counts mapped weight files and address space that is only
    reserved. ONNX Runtime 1.31 itself needs about 160 MB; too little for its threads to start can make it
    hang, which
    then ends as `TimedOut`. Where there is no `resource` module, memory is not limited.
    """

    seconds: float | None = 600.0
    memory: int | None = field(default_factory=_most_of_memory)

    @classmethod
    def of(cls, seconds: float, memory: int | None) -> Limits:
        """Return these limits; without a number for the memory, three quarters of the machine's."""
        return cls(seconds) if memory is None else cls(seconds, memory)


@dataclass(frozen=True)
class Returned:
    """The function came back with `value`."""

    value: Any


@dataclass(frozen=True)
class Raised:
    """The function raised. `error` is the exception itself where it is one of this package's own kinds."""

    kind: str
    message: str
    traceback: str = ""
    stage: str = ""
    error: MigrateError | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


@dataclass(frozen=True)
class Crashed:
    """The child ended without a word: by a signal ("SIGSEGV"), or with an exit code ("exit code 3")."""

    signal: str
    log: str = ""
    stage: str = ""

    def __str__(self) -> str:
        return f"the process crashed ({self.signal})"


@dataclass(frozen=True)
class TimedOut:
    """The child was killed after `seconds`."""

    seconds: float
    log: str = ""
    stage: str = ""

    def __str__(self) -> str:
        return f"not done after {self.seconds:g} s"


@dataclass(frozen=True)
class OutOfMemory:
    """An allocation failed under `limit` bytes, or the system killed the child (`limit` may then be None)."""

    limit: int | None
    log: str = ""
    stage: str = ""

    def __str__(self) -> str:
        return "out of memory" + (f" (limit {self.limit / 2**30:.1f} GB)" if self.limit else "")


Ending = Returned | Raised | Crashed | TimedOut | OutOfMemory
"""How a run ended. `stage` is the last `mark` that the function set before that."""


_current = threading.local()


def mark(stage: str) -> None:
    """Say, from within a function that `run` runs, what it is about to do; costs a small write."""
    _current.stage = stage
    path: Path | None = getattr(_current, "path", None)
    if path is not None:
        path.write_text(stage, encoding="utf-8")


def run(function: str, *args: object, limits: Limits | None = None, isolated: bool = True) -> Ending:
    """Call `function` ("package.module:name") with `args` in a child process and say how it ended.

    Arguments and the returned value must pickle. With `isolated=False` the call is made in this process: the
    same
    endings, without the limits and without the shelter from crashes. KeyboardInterrupt kills the child and
    goes on.
    """
    if not isolated:
        return _call(function, args)
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="onnx-migrate-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "request").write_bytes(
            pickle.dumps((function, args, limits.memory), pickle.HIGHEST_PROTOCOL)
        )
        (folder / "stage").touch()
        code = _wait(folder, limits.seconds)
        with (folder / "log").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL))
            log = file.read().decode("utf-8", "replace")
        stage = (folder / "stage").read_text(encoding="utf-8")
        if code is None:
            return TimedOut(limits.seconds or 0.0, log, stage)
        if code == 0:
            with (folder / "result").open("rb") as file:
                ending: Ending = pickle.load(file)  # written by our own child into a folder only we can read
            if isinstance(ending, OutOfMemory):
                return OutOfMemory(limits.memory, log, stage)
            return ending
        if -code == getattr(signal, "SIGKILL", 9) or any(word in log for word in _OUT_OF_MEMORY):
            return OutOfMemory(limits.memory, log, stage)
        return Crashed(signal.Signals(-code).name if code < 0 else f"exit code {code}", log, stage)


def _wait(folder: Path, seconds: float | None) -> int | None:
    """Run the child to its end and return its exit code, negative for a signal; None when time ran out."""
    search = [entry or os.getcwd() for entry in sys.path]
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-c", _BOOT, str(folder), str(os.getpid()), *search],
            stdin=subprocess.PIPE,  # held open and never written: its end tells the child that we are gone
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(child.pid, signal.SIGKILL)
            else:
                child.kill()
        child.wait()
        if child.stdin:
            child.stdin.close()


def _child(folder_name: str, parent: str) -> None:
    folder = Path(folder_name)
    _die_with(int(parent))
    function, args, memory = _request(folder / "request")
    if memory is not None:
        limit_memory(memory)
    _current.path = folder / "stage"
    ending = _call(function, args)
    part = folder / "result.part"
    with part.open("wb") as file:
        pickle.dump(ending, file, pickle.HIGHEST_PROTOCOL)
    part.replace(folder / "result")
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # native libraries have crashed in their own clean-up, after the work was done


def _request(path: Path) -> tuple[str, tuple[Any, ...], int | None]:
    request: tuple[str, tuple[Any, ...], int | None] = pickle.loads(path.read_bytes())
    return request


def _call(function: str, args: tuple[Any, ...]) -> Ending:
    _current.stage = ""
    try:
        module, _, name = function.partition(":")
        target: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return Returned(target(*args))
    except MemoryError:
        return OutOfMemory(None, stage=_current.stage)
    except Exception as error:
        if any(word in str(error) for word in _OUT_OF_MEMORY):
            return OutOfMemory(None, log=str(error), stage=_current.stage)
        own = error if isinstance(error, MigrateError) else None
        return Raised(type(error).__name__, str(error), traceback.format_exc(), _current.stage, own)


def limit_memory(memory: int) -> None:
    """Limit this process to so many bytes of private writable memory, where the system can."""
    try:
        import resource
    except ImportError:
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: works while native code holds the GIL
        if os.getppid() != parent:
            os._exit(1)
    else:
        threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


@contextlib.contextmanager
def captured_output() -> Iterator[Callable[[], str]]:
    """Collect what native code writes to stderr within the block; the value is a function that reads it.

    Works on the file descriptor, so it takes the whole process's stderr: meant for children.
    """
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)

        def text() -> str:
            size = os.fstat(file.fileno()).st_size
            return os.pread(file.fileno(), size, 0).decode("utf-8", "replace")

        try:
            yield text
        finally:
            os.dup2(kept, 2)
            os.close(kept)
