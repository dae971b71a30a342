"""A build step: migrates a folder, prints the outcome of each model, and exits with 1 if one failed.

python build_models.py models build
"""

from __future__ import annotations

import sys

import onnx_migrate
from onnx_migrate.batching import Outcome, Watcher


class PrintOutcomes(Watcher):
    """Prints a line for each model."""

    def ended(self, outcome: Outcome) -> None:
        """Print the outcome of a model, and the reason if it was not migrated."""
        print(f"{outcome.kind:10} {outcome.source} {outcome.reason}")  # noqa: T201


if __name__ == "__main__":
    source, target = sys.argv[1:]
    summary = onnx_migrate.batch([source], target, opset=17, resume=True, watcher=PrintOutcomes())
    sys.exit(0 if summary.ok else 1)
