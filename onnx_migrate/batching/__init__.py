"""Migrating many models: finding them, running them in worker processes, and a journal of the results."""

from __future__ import annotations

from onnx_migrate.batching.find import find, place
from onnx_migrate.batching.job import Job, Outcome, Summary
from onnx_migrate.batching.run import Watcher, batch, run_jobs

__all__ = ["Job", "Outcome", "Summary", "Watcher", "batch", "find", "place", "run_jobs"]
