"""A build step: migrates a folder, says what became of each model, and ends with 1 if one was not done.

python build_models.py models build
"""

from __future__ import annotations

import sys

import onnx_migrate
from onnx_migrate.batching import Outcome, Watcher


class Told(Watcher):
    """Prints a line for each model."""

    def ended(self, outcome: Outcome) -> None:
        """Say how a model ended, and why."""
        print(f"{outcome.kind:10} {outcome.source} {outcome.reason}")  # noqa: T201


if __name__ == "__main__":
    source, target = sys.argv[1:]
    summary = onnx_migrate.batch([source], target, opset=17, resume=True, watcher=Told())
    sys.exit(0 if summary.ok else 1)
