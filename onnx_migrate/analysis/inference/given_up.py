"""What is remembered of an inference that took too much, or crashed: for the report, and so that it is not tried again and again.

A migration asks for inference a dozen times, of models that hardly differ. Where it took too much once, it would each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from onnx_migrate.isolate import Ending

__all__ = ["GivenUp", "cannot_infer", "cannot_propagate", "give_up", "remembering"]


@dataclass
class GivenUp:
    """What was given up within a block, as texts for the report, each once."""

    reasons: list[str] = field(default_factory=list)
    without_propagation: bool = False
    without_inference: str = ""


_current: ContextVar[GivenUp | None] = ContextVar("given_up", default=None)


@contextmanager
def remembering() -> Iterator[GivenUp]:
    """Remember what is given up within the block; a block inside another adds to the outer one's."""
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    token = _current.set(GivenUp())
    try:
        found = _current.get()
        assert found is not None
        yield found
    finally:
        _current.reset(token)


def cannot_propagate() -> bool:
    """Return whether data propagation was given up in this block."""
    found = _current.get()
    return found is not None and found.without_propagation


def cannot_infer() -> str:
    """Return why inference was given up in this block, "" where it was not."""
    found = _current.get()
    return "" if found is None else found.without_inference


def give_up(ending: Ending, *, propagate: bool) -> str:
    """Remember how an inference ended that did not return, with or without data propagation; return that as a text."""
    what = "shape inference with data propagation" if propagate else "shape inference"
    reason = f"onnx's {what} was given up: {ending}"
    found = _current.get()
    if found is not None:
        if propagate:
            found.without_propagation = True
        else:
            found.without_inference = reason
        found.reasons.append(reason)
    return reason
