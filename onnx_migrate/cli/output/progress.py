"""The stage that runs, and how far it has come, shown on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnx_migrate.cli.stop_signals import check_stopped

if TYPE_CHECKING:
    from onnx_migrate.process.progress import Progress as Event

__all__ = ["ProgressLine"]

_PATIENCE = 2.0
"""Seconds that a stage may take before it is shown how far it has come."""


class ProgressLine:
    """Shows the stage that runs on stderr; only if that is a terminal, where the line can be erased again.

    Of a stage that takes over two seconds, the line says for how long it runs, and what `follow` was told last:
    "verify: input 2 of 3, run 5 of 8, 12 s".
    """

    def __init__(self, quiet: bool, stage: str = "loading") -> None:
        self._status: Any = None
        self._stage, self._place, self._start = stage, "", time.monotonic()
        self.begins: Callable[[str], None] = lambda stage: None
        """What is told of each stage as it begins."""
        if not quiet and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status(self)

    def __enter__(self) -> ProgressLine:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        self("")

    def __call__(self, stage: str) -> None:
        """Show a stage; erase the line if `stage` is "". Ends the command here if a signal asked for that and was lost."""
        if stage:
            check_stopped()
            self.begins(stage)
            self._stage, self._place, self._start = stage, "", time.monotonic()
        elif self._status is not None:
            self._status.stop()

    def follow(self, event: Event) -> None:
        """Show how far a call has come: its stage, and once that has run for two seconds, where in the stage it is."""
        if event.detail:
            self._place = event.detail
        else:
            self(event.stage)

    @property
    def line(self) -> str:
        """What is shown now."""
        seconds = time.monotonic() - self._start
        if seconds < _PATIENCE:
            return self._stage
        return f"{self._stage}: " + ", ".join(filter(None, [self._place, f"{seconds:.0f} s"]))

    def __rich__(self) -> Any:
        """Return the line as plain text, which is drawn several times a second."""
        from rich.text import Text

        return Text(self.line)
