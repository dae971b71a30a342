"""How a call in a child process ended, as values that pickle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onnx_migrate.errors import MigrateError

__all__ = ["Crashed", "Ending", "OutOfMemory", "Raised", "Returned", "TimedOut", "names_lack_of_memory"]

_OUT_OF_MEMORY = (
    "MemoryError",
    "bad_alloc",
    "bad allocation",
    "Failed to allocate memory",
    "Cannot allocate memory",
)


def names_lack_of_memory(text: str) -> bool:
    """Return whether a message or log says that an allocation failed, in the words of Python, C++ or ONNX Runtime."""
    return any(sign in text for sign in _OUT_OF_MEMORY)


@dataclass(frozen=True)
class Returned:
    """The function returned `value`."""

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
    """The process ended within the call: by a signal ("SIGSEGV"), or with an exit code ("exit code 3")."""

    signal: str
    log: str = ""
    stage: str = ""

    def __str__(self) -> str:
        return f"the process crashed ({self.signal})"


@dataclass(frozen=True)
class TimedOut:
    """The process was killed after `seconds`."""

    seconds: float
    log: str = ""
    stage: str = ""

    def __str__(self) -> str:
        return f"not done after {self.seconds:g} s"


@dataclass(frozen=True)
class OutOfMemory:
    """An allocation failed under `limit` bytes, or the system killed the process (`limit` may then be None)."""

    limit: int | None
    log: str = ""
    stage: str = ""

    def __str__(self) -> str:
        return "out of memory" + (f" (limit {self.limit / 2**30:.1f} GB)" if self.limit else "")


Ending = Returned | Raised | Crashed | TimedOut | OutOfMemory
"""`log` is the end of what the process printed, `stage` the last `mark` that the function set."""
