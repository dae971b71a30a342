"""LRN, MeanVarianceNormalization and LpNormalization."""

from __future__ import annotations

from onnx_migrate.engine.registry import compatible

compatible("LRN", 13, reason="more types are allowed")
compatible("MeanVarianceNormalization", 13, reason="more types are allowed")
compatible("LpNormalization", 22, reason="more types are allowed")
