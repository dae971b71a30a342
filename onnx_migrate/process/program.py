"""A program that is not ours, in a process of its own: it takes requests as lines of JSON and answers each with one.

As with a worker (worker.py), what it does to itself ends nothing else: it may crash, hang or take all memory.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from onnx_migrate.process.endings import Ending
from onnx_migrate.process.limits import Limits
from onnx_migrate.process.supervised import Supervised

__all__ = ["Program"]


class Program(Supervised):
    """A running program, in its `folder`.

    `limits.memory` bounds its private writable memory, and that of what it starts, where the system has prlimit;
    `limits.seconds` the time that one request may take. Raises OSError where the command cannot be run.
    """

    def __init__(
        self, command: Sequence[str], limits: Limits, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(command, {**os.environ, **(environment or {})}, limits.memory, in_folder=True)
        self._limits = limits
        self._printed = 0
        if limits.memory is not None:
            _limit_memory(self._process.pid, limits.memory)

    def ask(self, request: Mapping[str, Any] | None) -> dict[str, Any] | Ending:
        """Send a request (None: nothing, where the program speaks first) and return its answer, or how it ended instead."""
        self._printed = self._log_size()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._killed_after(self._limits.seconds):
            try:
                if request is not None:
                    self._process.stdin.write(json.dumps(request).encode() + b"\n")
                    self._process.stdin.flush()
                line = self._process.stdout.readline()
                if line.endswith(b"\n"):
                    answer: dict[str, Any] = json.loads(line)
                    return answer
                return self._ended(self._limits.seconds, self._printed)
            except OSError:
                return self._ended(self._limits.seconds, self._printed)

    def printed(self) -> str:
        """Return the end of what it has printed since the last request."""
        return self._tail(self._printed)


def _limit_memory(process: int, memory: int) -> None:
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):  # Linux has prlimit
        import resource

        hard = resource.prlimit(process, resource.RLIMIT_DATA)[1]
        soft = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
        resource.prlimit(process, resource.RLIMIT_DATA, (soft, hard))
