"""The pass that gives a model an IR version, and the parts of the model that it rewrites for an older version."""

from __future__ import annotations

from .ir_version import IrVersion
from .lower_ir import fit_ir_version, lower_ir

__all__ = ["IrVersion", "fit_ir_version", "lower_ir"]
