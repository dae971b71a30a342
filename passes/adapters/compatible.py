"""Steps in which a node stays as it is: claims that tests run, with what the standard's changelog says changed."""

from __future__ import annotations

from onnx_migrate.engine.registry import compatible

compatible("Relu", 6, 13, 14, reason="more types are allowed")
compatible("Softmax", 11, reason="negative axes are allowed")
compatible("Unsqueeze", 11, reason="negative axes are allowed")
compatible("Squeeze", 11, reason="negative axes are allowed")
compatible("Clip", 12, 13, reason="more types are allowed")
compatible("Unsqueeze", 21, 23, 24, 25, reason="more types are allowed")
compatible("Squeeze", 21, 23, 24, 25, reason="more types are allowed")
compatible("Reshape", 19, 21, 23, 24, 25, reason="more types are allowed")
compatible("Shape", 19, 21, 23, 24, 25, reason="more types are allowed")
compatible("Flatten", 21, 23, 24, 25, reason="more types are allowed")
