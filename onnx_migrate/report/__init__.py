"""What one migration did, for people and for machines."""

from __future__ import annotations

from onnx_migrate.report.report import Report, Side
from onnx_migrate.report.unfinished import Unfinished

__all__ = ["Report", "Side", "Unfinished"]
