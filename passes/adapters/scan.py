"""Scan: it no longer scans a batch."""

from __future__ import annotations

from onnx_migrate.engine.registry import compatible

compatible("Scan", 11, reason="negative axes are allowed")
compatible("Scan", 16, 19, 21, 23, 24, 25, reason="more types are allowed")
