"""The report of one migration, as a value, as JSON, as text and as an HTML page."""

from __future__ import annotations

from onnx_migrate.report.partial_report import PartialReport
from onnx_migrate.report.report import ModelSummary, Report

__all__ = ["ModelSummary", "PartialReport", "Report"]
