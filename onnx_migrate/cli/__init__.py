"""The command line: a thin skin over the library, one file per command."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line with the process's arguments; the console script's entry point."""
    from onnx_migrate.cli.app import run

    run()
