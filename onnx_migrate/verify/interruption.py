"""Child processes that ended before their work was done: which step ended them, and what a user can do."""

from __future__ import annotations

from onnx_migrate import isolate
from onnx_migrate.isolate.endings import what_helps

__all__ = ["interruption", "is_crash_of_result"]


def interruption(ending: isolate.Ending) -> str:
    """Describe an ending other than Returned, as in "not done after 600 s, in the step 'original: running'; …"."""
    text = f"{ending}, in the step {getattr(ending, 'stage', '') or 'start'!r}"
    fault = "that is a fault of onnx-migrate: please report it" if isinstance(ending, isolate.Raised) else ""
    return "; ".join(filter(None, (text, what_helps(ending), fault)))


def is_crash_of_result(ending: isolate.Ending) -> bool:
    """Return whether the result, and nobody from outside, ended the process that loaded or ran it."""
    return (
        isinstance(ending, isolate.Crashed) and not ending.from_outside and ending.stage.startswith("result")
    )
