"""The time and memory that a child process may use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Limits", "data_size", "less_memory", "limit_memory", "memory_limit"]


def _most_of_memory() -> int | None:
    """Return three quarters of the machine's memory, but at most the memory limit of this process.

    A worker of a batch has a share of the memory; the processes that it starts for one model get no larger share.
    """
    own = memory_limit()
    try:
        most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4
    except (AttributeError, ValueError, OSError):
        return own
    return most if own is None else min(most, own)


@dataclass(frozen=True)
class Limits:
    """Wall-clock seconds, and bytes of private writable memory; None is no limit.

    Memory is limited with RLIMIT_DATA, which Linux enforces on all private writable mappings. Both it and RLIMIT_AS work with
    ONNX Runtime's threads; RLIMIT_AS also counts mapped weight files and address space that is only reserved. ONNX Runtime 1.31
    itself needs about 160 MB. If its threads have too little memory to start, it may hang, which then ends as `TimedOut`.
    Without a `resource` module, memory is not limited.
    """

    seconds: float | None = 600.0
    memory: int | None = field(default_factory=_most_of_memory)

    @classmethod
    def of(cls, seconds: float, memory: int | None) -> Limits:
        """Return these limits; without a number for the memory, three quarters of the machine's."""
        return cls(seconds) if memory is None else cls(seconds, memory)


def limit_memory(memory: int | None) -> None:
    """Limit this process to so many bytes of private writable memory, if the system can; None is no limit."""
    try:
        import resource
    except ImportError:
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if memory is None or (hard != resource.RLIM_INFINITY and memory > hard):
        memory = hard
    resource.setrlimit(resource.RLIMIT_DATA, (memory, hard))


@contextmanager
def less_memory(more: int) -> Iterator[None]:
    """In the block, let this process take at most so many bytes more than it has, if its memory is limited."""
    allowed = memory_limit()
    if allowed is not None:
        limit_memory(min(allowed, data_size() + more))
    try:
        yield
    finally:
        if allowed is not None:
            limit_memory(allowed)


def memory_limit() -> int | None:
    """Return the limit of this process's private writable memory in bytes, None without a limit."""
    try:
        import resource
    except ImportError:
        return None
    soft = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def data_size() -> int:
    """Return the bytes of private writable memory that this process has, as Linux counts them for its limit; else 0."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0
