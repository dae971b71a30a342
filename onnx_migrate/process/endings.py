"""The endings of a call in a child process, as values that pickle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnx_migrate.errors import MigrateError

__all__ = [
    "Crashed",
    "Ending",
    "OutOfMemory",
    "Raised",
    "Returned",
    "TimedOut",
    "names_lack_of_memory",
    "what_helps",
]

_OUT_OF_MEMORY = (
    "MemoryError",
    "bad_alloc",
    "bad allocation",
    "ailed to allocate memory",
    "Cannot allocate memory",
    "Unable to allocate",  # NumPy
    "Memory allocation still failed",  # OpenBLAS
    "smaller than requested bytes",  # ONNX Runtime's arena
    "ut of memory",
    "ot enough memory",
    "failed to map segment",  # of a library, which the system loads
    "start new thread",  # Python: a thread needs memory for its stack
    "pthread_create failed",
    "Thread creation failed",
)


def names_lack_of_memory(text: str) -> bool:
    """Return whether a message or log says that an allocation failed, in the words of Python, C++ or ONNX Runtime."""
    return any(sign in text for sign in _OUT_OF_MEMORY)


_SENT = frozenset({"SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGKILL"})


@dataclass(frozen=True)
class Returned:
    """The function returned `value`."""

    value: Any


@dataclass(frozen=True)
class Raised:
    """The function raised. `error` is the exception itself if its class belongs to this package."""

    kind: str
    message: str
    traceback: str = ""
    stage: str = ""
    error: MigrateError | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


@dataclass(frozen=True)
class Crashed:
    """The process ended during the call: by a signal ("SIGSEGV"), or with an exit code ("exit code 3")."""

    signal: str
    log: str = ""
    stage: str = ""

    @property
    def from_outside(self) -> bool:
        """Whether somebody else ended the process: faults of the code do not raise this signal."""
        return self.signal in _SENT

    def __str__(self) -> str:
        if self.from_outside:
            return f"the process was ended from outside ({self.signal})"
        return f"the process crashed ({self.signal})"


@dataclass(frozen=True)
class TimedOut:
    """The process was killed after `seconds`."""

    seconds: float
    log: str = ""
    stage: str = ""

    def __str__(self) -> str:
        digits = ".2g" if self.seconds < 10 else ".0f"
        return f"timed out after {self.seconds:{digits}} s"


@dataclass(frozen=True)
class OutOfMemory:
    """An allocation failed under `limit` bytes, or the system killed the process (`limit` may then be None)."""

    limit: int | None
    log: str = ""
    stage: str = ""
    cause: str = ""
    """The failure, in the words of the library that reported it; "" if nothing reported it."""

    def __str__(self) -> str:
        size = (self.limit or 0) / 2**30
        limit = f" (limit {size:.1f} GB)" if size >= 1 else f" (limit {size:.2g} GB)" if size else ""
        return f"out of memory{limit}" + (f": {self.cause}" if self.cause else "")


Ending = Returned | Raised | Crashed | TimedOut | OutOfMemory
"""`log` is the end of what the process printed, `stage` the last `mark` that the function set."""


def what_helps(ending: Ending, time_option: str = "--timeout") -> str:
    """Return the option that gives a process more of the missing resource; "" if it lacked nothing.

    `time_option` is the command's option for time.
    """
    if isinstance(ending, TimedOut):
        return f"{time_option} allows more time"
    return "--memory-limit allows more memory" if isinstance(ending, OutOfMemory) else ""
