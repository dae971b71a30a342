"""Child processes that ended before their work was done: which step ended them, and what a user can do."""

from __future__ import annotations

from onnx_migrate import isolate

__all__ = ["interruption"]


def interruption(ending: isolate.Ending) -> str:
    """Describe an ending other than Returned, as in "not done after 600 s, in the step 'original: running'; …"."""
    text = f"{ending}, in the step {getattr(ending, 'stage', '') or 'start'!r}"
    if isinstance(ending, isolate.TimedOut):
        return f"{text}; --timeout allows more time"
    if isinstance(ending, isolate.OutOfMemory):
        return f"{text}; --memory-limit allows more memory"
    return text
