"""The command line over the library: one file for each command in commands/, shared options, and output."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command line with the arguments of the process; the entry point of the console script."""
    from onnx_migrate.cli.app import run

    run()
