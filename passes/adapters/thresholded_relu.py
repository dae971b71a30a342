"""ThresholdedRelu."""

from __future__ import annotations

from onnx_migrate.engine.registry import compatible

compatible("ThresholdedRelu", 10, reason="experimental before, the operator became one of the standard")
compatible("ThresholdedRelu", 22, reason="more types are allowed")
