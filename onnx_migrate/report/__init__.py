"""What one migration did, for people and for machines."""

from __future__ import annotations

from onnx_migrate.report.partial_report import PartialReport
from onnx_migrate.report.report import ModelSummary, Report

__all__ = ["ModelSummary", "PartialReport", "Report"]
