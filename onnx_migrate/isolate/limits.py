"""What a child process may use."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

__all__ = ["Limits", "limit_memory"]


def _most_of_memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4
    except (AttributeError, ValueError, OSError):
        return None


@dataclass(frozen=True)
class Limits:
    """Wall-clock seconds, and bytes of private writable memory; None is no limit.

    Memory is limited with RLIMIT_DATA, which Linux enforces on all private writable mappings. Both it and RLIMIT_AS
    work with ONNX Runtime's threads; RLIMIT_AS also counts mapped weight files and address space that is only
    reserved. ONNX Runtime 1.31 itself needs about 160 MB; too little for its threads to start can make it hang, which
    then ends as `TimedOut`. Where there is no `resource` module, memory is not limited.
    """

    seconds: float | None = 600.0
    memory: int | None = field(default_factory=_most_of_memory)

    @classmethod
    def of(cls, seconds: float, memory: int | None) -> Limits:
        """Return these limits; without a number for the memory, three quarters of the machine's."""
        return cls(seconds) if memory is None else cls(seconds, memory)


def limit_memory(memory: int) -> None:
    """Limit this process to so many bytes of private writable memory, where the system can."""
    try:
        import resource
    except ImportError:
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
