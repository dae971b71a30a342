"""Makes dims of the inputs symbolic, and declares the resulting dims of the outputs."""

from __future__ import annotations

from .dynamic_dims import DynamicDims

__all__ = ["DynamicDims"]
