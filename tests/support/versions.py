"""The installed releases of onnx and ONNX Runtime, for tests of what differs between them."""

from __future__ import annotations

import onnx
import onnxruntime

__all__ = ["ONNX", "RUNTIME"]

ONNX = tuple(map(int, onnx.__version__.split(".")[:2]))
RUNTIME = tuple(map(int, onnxruntime.__version__.split(".")[:2]))
