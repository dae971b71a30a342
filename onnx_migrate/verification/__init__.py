"""Decides, by the verdicts of a migration, which model is the result, and whether there is none."""

from __future__ import annotations

from onnx_migrate.verification.chain import Verifying

__all__ = ["Verifying"]
