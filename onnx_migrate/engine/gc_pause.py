"""Keeps Python's cycle collector out of work that makes a million small objects and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["paused_garbage_collection"]


@contextmanager
def paused_garbage_collection() -> Iterator[None]:
    """Pause cyclic garbage collection: each full collection walks all that a pass has made so far.

    On 50,000 rewritten nodes that is a third of the time, and grows faster than the nodes.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
