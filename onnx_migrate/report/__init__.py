"""What one migration did, for people and for machines."""

from __future__ import annotations

from onnx_migrate.report.partial_report import Unfinished
from onnx_migrate.report.report import Report, Side

__all__ = ["Report", "Side", "Unfinished"]
