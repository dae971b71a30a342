"""The pass that computes in int32 instead of int64, if ranges prove that nothing overflows."""

from __future__ import annotations

from .int32 import Int32, Int32Ports

__all__ = ["Int32", "Int32Ports"]
