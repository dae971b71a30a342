"""Many models: which, how, by what workers, and what is kept of it."""

from __future__ import annotations

from onnx_migrate.batching.find import find, place
from onnx_migrate.batching.job import Job, Outcome, Summary
from onnx_migrate.batching.run import Watcher, batch, run

__all__ = ["Job", "Outcome", "Summary", "Watcher", "batch", "find", "place", "run"]
