"""The pass that gives a model an IR version, and what it rewrites for an older one."""

from __future__ import annotations

from .ir_version import IrVersion
from .lower_ir import fit_ir_version, lower_ir

__all__ = ["IrVersion", "fit_ir_version", "lower_ir"]
