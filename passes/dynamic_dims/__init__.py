"""Makes dims of the inputs symbolic, and declares of the outputs what follows."""

from __future__ import annotations

from .dynamic_dims import DynamicDims

__all__ = ["DynamicDims"]
