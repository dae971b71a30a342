"""The pass after which every value has a fixed shape: shape arithmetic is folded, and what depends on data is named."""

from __future__ import annotations

from .fold import fold_shapes
from .static_shapes import StaticShapes

__all__ = ["StaticShapes", "fold_shapes"]
