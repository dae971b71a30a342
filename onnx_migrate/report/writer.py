"""Lines on a rich console: as markup on a terminal, as plain text elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Writer"]


class Writer:
    """Writes lines of markup; a heading has an empty line before it."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, text: str) -> None:
        """Write a line, however long it is."""
        self._console.print(text, highlight=False, soft_wrap=True)

    def head(self, text: str) -> None:
        """Write a heading."""
        self.line(f"\n[bold]{text}[/]")
