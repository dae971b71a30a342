"""The pass that brings a model to another floating-point type: float16, bfloat16 or float32."""

from __future__ import annotations

from .precision import KINDS, Precision

__all__ = ["KINDS", "Precision"]
