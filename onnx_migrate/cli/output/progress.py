"""The stage that runs, shown on a terminal."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["Progress"]


class Progress:
    """Shows the stage that runs on stderr; only if that is a terminal, where the line can be erased again."""

    def __init__(self, quiet: bool) -> None:
        self._status: Any = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console

            self._status = Console(stderr=True).status("loading")

    def __enter__(self) -> Progress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *error: object) -> None:
        self("")

    def __call__(self, stage: str) -> None:
        """Show a stage; erase the line if `stage` is ""."""
        if self._status is not None:
            self._status.update(stage)
            if not stage:
                self._status.stop()
