"""The errors of a system that starts no process, with the reason and a hint."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from onnx_migrate.errors import MigrateError

__all__ = ["no_interpreter", "starting"]

_HELPS = {
    errno.EAGAIN: "raise the limit on processes: ulimit -u, TasksMax of systemd, or the pids limit of the container",
    errno.ENOMEM: "give this program more memory, or let it hold less as it calls onnx-migrate",
    errno.EMFILE: "raise the limit on open files, ulimit -n, or close some",
    errno.ENFILE: "close files of other programs: the limit of the whole system is reached",
    errno.EPERM: "let the sandbox of this program start processes",
    errno.ENOENT: "let sys.executable be the path of a Python interpreter",
}
"""The hint for each number of an error."""


@contextmanager
def starting() -> Iterator[None]:
    """Raise MigrateError, code `no-process`, if the system starts no process or thread in the block.

    Python raises RuntimeError if it starts no thread: the system has none left, or the interpreter ends.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise _no_process(reason, _HELPS.get(error.errno or 0, "")) from error
    except RuntimeError as error:
        at_end = "make this call before the program ends, as at the end of its main function"
        raise _no_process(str(error), at_end if "shutdown" in str(error) else _HELPS[errno.EAGAIN]) from error


def no_interpreter() -> MigrateError:
    """Return the error of a program that has no Python interpreter beside it."""
    return _no_process(
        "this program embeds Python, and there is no interpreter of this version beside it",
        "let sys.executable be the path of one, or pass isolated=False: native code then runs in this process",
    )


def _no_process(reason: str, hint: str) -> MigrateError:
    return MigrateError(
        f"no process can be started for the native code that works on the model: {reason}",
        code="no-process",
        hint=hint,
    )
