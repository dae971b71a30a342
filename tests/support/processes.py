"""Processes that end with the test that starts them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

__all__ = ["Start", "start"]

Start = Callable[..., "subprocess.Popen[Any]"]
"""Starts a process; takes what subprocess.Popen takes."""


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that are killed at the end of the test if they still run, and whose pipes are closed.

    A process or a pipe that is left is collected during a later test, which then fails for a ResourceWarning.
    """
    with ExitStack() as stack:

        def popen(*args: Any, **options: Any) -> subprocess.Popen[Any]:
            process = stack.enter_context(subprocess.Popen(*args, **options))
            stack.callback(process.kill)
            return process

        yield popen
