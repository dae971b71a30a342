"""Limits of the command's own process: its time, memory, and the depth of recursion.

Native code that may run for long has a child process, with limits of its own (process/). This process runs only Python, and
native calls whose time and memory are in proportion to the file. A hostile file may still make these too expensive.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["limited"]

_CHILDREN_HAVE_LIMITS = frozenset({"simplify", "verify", "prove", "saving", "download"})
"""Stages without a time limit here: each of their child processes or transfers has one, and a disk may be slow."""

_LEAST_MEMORY = 1 << 30
"""Bytes that this process may take in any case, however little its child processes may."""

_AGAIN = 5.0
"""Seconds after which the exception of a stage's time limit is raised again, where something has caught it."""


_SOON, _LONGEST = 1e-3, 1e8
"""The seconds that the system's timer is set to at least, where 0 would stop it, and at most."""


class _Expired(BaseException):
    """The time of a stage is up. It is no MigrateError, since some stages treat that as their answer: the model is invalid."""


@contextmanager
def limited(seconds: float, memory: int | None, stage: str = "load") -> Iterator[Callable[[str], None]]:
    """Limit the block to `seconds` in all, which the stages share, and to `memory` bytes, where the system can.

    The value is a function to call with the name of each further stage as it begins; "" ends the last. Raises MigrateError,
    code `timed-out`, `out-of-memory` or `too-deep`, where the block reaches a limit.
    """
    from onnx_migrate.errors import MigrateError
    from onnx_migrate.process import Limits
    from onnx_migrate.process.deadline import Deadline, until
    from onnx_migrate.process.limits import limit_memory, memory_limit

    current, deadline = stage, Deadline(seconds)

    def expire(number: int, frame: FrameType | None) -> None:
        error = MigrateError(
            f"the stage {current!r} timed out after {deadline.own_seconds:g} s",
            code="timed-out",
            hint="--timeout allows more seconds",
        )
        raise _Expired(error) if current == "inspect" else error

    def begin(name: str) -> None:
        nonlocal current
        current = name
        if timed:
            # These stages have limits for each child process.
            endless = not name or name in _CHILDREN_HAVE_LIMITS
            timer_seconds = min(max(deadline.own_work_left(), _SOON), _LONGEST)
            signal.setitimer(signal.ITIMER_REAL, 0 if endless else timer_seconds, _AGAIN)

    # Signals reach the main thread only.
    timed = sys.platform != "win32" and threading.current_thread() is threading.main_thread()
    if timed:
        before = signal.signal(signal.SIGALRM, expire)
    most = Limits.of(seconds, memory).memory
    allowed = memory_limit()
    if most is not None:
        limit_memory(max(most, _LEAST_MEMORY))
    begin(stage)
    try:
        with until(deadline):
            yield begin
    except _Expired as expired:
        raise expired.args[0] from None
    except MemoryError as error:
        raise MigrateError(
            f"the memory limit was reached in the stage {current!r}",
            code="out-of-memory",
            hint="--memory-limit allows more",
        ) from error
    except RecursionError as error:
        raise MigrateError(
            f"the model is nested too deeply for the stage {current!r}",
            code="too-deep",
            hint="inline its functions, or export it with fewer sub-graphs in sub-graphs",
        ) from error
    finally:
        begin("")
        if timed:
            # The caller's handler comes back.
            signal.signal(signal.SIGALRM, before)
        limit_memory(allowed)
