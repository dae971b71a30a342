"""The stage that runs, and how far it has come: a line on a terminal, and without one a line every 30 seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onnx_migrate.cli.output.heartbeat import Heartbeat
from onnx_migrate.cli.stop_signals import PROGRAM, check_stopped

if TYPE_CHECKING:
    from onnx_migrate.process.progress import Progress as Event

__all__ = ["ProgressLine"]

_PATIENCE = 2.0
"""Seconds that a stage may take before the line shows how far it has come."""


class ProgressLine:
    """Shows the stage that runs on stderr: on a terminal in a line that is erased at the end, elsewhere every 30 seconds.

    If a stage takes over two seconds, the line shows its time, and the last detail that `follow` got. An example is
    "stage 7 of 8, comparing with the original: input 2 of 3, run 5 of 8, 12 s".
    """

    def __init__(self, quiet: bool, stage: str = "loading") -> None:
        self._stage, self._place, self._start = stage, "", time.monotonic()
        self.begins: Callable[[str], None] = lambda stage: None
        """Called with the name of each stage as it begins."""
        self._shown: Any = None
        self._open = ExitStack()
        if quiet:
            return
        if sys.stderr.isatty():
            from rich.console import Console

            self._shown = Console(stderr=True).status(self)
        else:
            self._shown = Heartbeat(lambda: f"{PROGRAM}: {self.line}")

    def __enter__(self) -> ProgressLine:
        if self._shown is not None:
            self._open.enter_context(self._shown)
        return self

    def __exit__(self, *error: object) -> None:
        self("")

    def __call__(self, stage: str) -> None:
        """Show a stage; erase the line if `stage` is "". Ends the command here if a signal asked for that and was lost."""
        if stage:
            self._begin(stage, stage)
        elif self._shown is not None:
            self._open.close()

    def follow(self, event: Event) -> None:
        """Show how far a call has come: its stage, and once that has run for two seconds, how far the stage has come."""
        if event.detail:
            self._place = event.detail
            return
        title = str(replace(event, detail=""))
        number = f"stage {event.number} of {event.stages}, " if event.number and event.stages > 1 else ""
        self._begin(event.stage, f"{number}{title}")

    def _begin(self, stage: str, shown: str) -> None:
        check_stopped()
        self.begins(stage)
        self._stage, self._place, self._start = shown, "", time.monotonic()

    @property
    def line(self) -> str:
        """The current text of the line."""
        seconds = time.monotonic() - self._start
        if seconds < _PATIENCE:
            return self._stage
        return f"{self._stage}: " + ", ".join(filter(None, [self._place, f"{seconds:.0f} s"]))

    def __rich__(self) -> Any:
        """Return the line as plain text, which is drawn several times a second."""
        from rich.text import Text

        return Text(self.line)
