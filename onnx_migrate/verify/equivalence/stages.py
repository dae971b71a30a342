"""The stages of a check, which a child process marks as it begins them: they tell where a check goes on after a crash."""

from __future__ import annotations

from onnx_migrate.verify.evaluators.configurations import OPTIMIZED

__all__ = ["BRANCHES_STAGE", "CORNERS_STAGE", "DISTANCE_STAGE", "OPTIMISED_STAGE", "SIZES_STAGE"]

SIZES_STAGE = "original: running, sizes"
"""The original runs at some sizes; the index of the choice of sizes follows."""

CORNERS_STAGE = "original: running, corner inputs"
"""The original runs on corner inputs; some of these may end the process that runs it."""

OPTIMISED_STAGE = f"original: running, {OPTIMIZED}"
"""ONNX Runtime runs the original with optimisation."""

BRANCHES_STAGE = "original: running, which branches it takes"
"""The original runs with the conditions of its branches as outputs."""

DISTANCE_STAGE = "another model: running"
"""The distance of another model is measured; a failure in it says nothing of the result."""
