"""ThresholdedRelu: experimental before opset 10."""

from __future__ import annotations

from onnx_migrate.engine.steps.registry import compatible

compatible("ThresholdedRelu", 10, reason="the operator was experimental and became part of the standard")
compatible("ThresholdedRelu", 22, reason="more types are allowed")
