"""Remarks: what went wrong beside a result that is whole, such as an old file that could not be removed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["collected_remarks", "remark"]

_collected: ContextVar[list[str] | None] = ContextVar("remarks", default=None)


def remark(text: str) -> None:
    """Add a remark to those that the caller collects; where nobody does, it is a RuntimeWarning."""
    collected = _collected.get()
    if collected is None:
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    else:
        collected.append(text)


@contextmanager
def collected_remarks() -> Iterator[list[str]]:
    """Yield the list to which the remarks of the block, in this thread, are added."""
    collected: list[str] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)
