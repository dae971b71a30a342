"""Lets a fork of this process wait until other threads have imported the modules that a call needs.

A fork has only the thread that made it. If another thread was importing a module, that module stays half imported in the fork.
Nothing releases the lock of its import, so the next import of the module waits for ever. Calls import much of this package when
they first need it.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident  # `threading` would take a millisecond of each start

__all__ = ["import_what_locks", "imported_by_others"]

_PATIENCE = 10.0
"""Seconds that a fork waits at most. An import takes less than one, unless the file system hangs."""

_PAUSE = 0.001
"""Seconds between two checks of the locks."""

_PACKAGES = frozenset(
    (
        "onnx_migrate",
        "onnx",
        "numpy",
        "google",
        "ml_dtypes",
        "onnxruntime",
        "onnxsim",
        "onnx_ir",
        "rich",
        "multiprocessing",
    )
)
"""The packages that calls import, beside the standard library, whose modules numpy and Python itself import on first use.

A host may run its main loop within the import of another package, which never ends.
"""


def import_what_locks() -> None:
    """Import the modules of the standard library that take a lock before a fork and release it after.

    Another thread that imported one while a fork waits here would let the fork release a lock that it never took.
    """
    import concurrent.futures.thread  # noqa: F401 - it imports `logging`, the other one


def imported_by_others() -> bool:
    """Return whether other threads are importing modules of the packages that calls import."""
    locks = getattr(
        sys.modules.get("_frozen_importlib"), "_module_locks", {}
    )  # of CPython; there is no public way
    own = get_ident()
    for name, reference in list(locks.items()):
        package = name.partition(".")[0]
        if package in _PACKAGES or package in sys.stdlib_module_names:
            owner = getattr(reference(), "owner", None)
            if owner is not None and owner != own:
                return True
    return False


def _wait() -> None:
    end, pause = time.monotonic() + _PATIENCE, 0.0
    while True:
        # Also before the first look: a thread that has just got its turn keeps it for 5 ms, until the fork is made.
        time.sleep(pause)
        if not imported_by_others() or time.monotonic() > end:
            return
        pause = _PAUSE


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait)
