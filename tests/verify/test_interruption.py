"""Child processes that ended early: the step, and what a user can do."""

from __future__ import annotations

import pytest

from onnx_migrate import isolate
from onnx_migrate.verify.interruption import interruption

TIMED_OUT = isolate.TimedOut(2.5, stage="original: running")
NO_MEMORY = isolate.OutOfMemory(2**31, stage="result: loading")
CRASHED = isolate.Crashed("SIGSEGV")
RAISED = isolate.Raised("KeyError", "'x'", stage="result: loading")


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (TIMED_OUT, "not done after 2.5 s, in the step 'original: running'; --timeout allows more time"),
        (
            NO_MEMORY,
            "out of memory (limit 2.0 GB), in the step 'result: loading'; --memory-limit allows more memory",
        ),
        (CRASHED, "the process crashed (SIGSEGV), in the step 'start'"),
        (
            RAISED,
            "KeyError: 'x', in the step 'result: loading'; that is a fault of onnx-migrate: please report it",
        ),
    ],
)
def test_the_message_names_the_step_and_the_option_that_helps(ending, text):
    assert interruption(ending) == text
