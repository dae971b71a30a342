"""The report of one migration, as a value, as JSON, as text and as an HTML page."""

from __future__ import annotations

from onnx_migrate.report import selections as _selections  # noqa: F401 (declares what is printed of these values)
from onnx_migrate.report.data import ModelSummary
from onnx_migrate.report.failure import PartialReport
from onnx_migrate.report.report import Report

__all__ = ["ModelSummary", "PartialReport", "Report"]
