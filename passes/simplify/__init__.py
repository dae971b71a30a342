"""The pass that simplifies a model with onnxsim, and keeps large weights out of onnxsim's sight."""

from __future__ import annotations

from .simplify import Simplify

__all__ = ["Simplify"]
