"""The command line, for tests that run what an explanation says."""

from __future__ import annotations

from tests.cli.conftest import cli, folder

__all__ = ["cli", "folder"]
