"""The pass that gives every value a fixed shape: it folds shape arithmetic, and reports sizes that depend on data."""

from __future__ import annotations

from .fold import fold_shapes
from .static_shapes import StaticShapes

__all__ = ["StaticShapes", "fold_shapes"]
