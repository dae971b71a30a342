"""Compatibility on where a model runs: as it is, after a migration, or not, and then what stands in the way.

Nothing is run: the tables of the runtimes say what each release takes, and passes bring copies of the model's structure there.
"""

from __future__ import annotations

from onnx_migrate.compatibility.check import (
    Compatibility,
    CompatibilityChecker,
    RuntimeCompatibility,
    Support,
    outlooks,
    with_nearest_release,
)

__all__ = [
    "Compatibility",
    "CompatibilityChecker",
    "RuntimeCompatibility",
    "Support",
    "outlooks",
    "with_nearest_release",
]
