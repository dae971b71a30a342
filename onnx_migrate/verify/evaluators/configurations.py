"""The names of the configurations in which the core runs models; each runtime's file has a loader for them (`LOADERS`)."""

from __future__ import annotations

__all__ = ["COARSE", "LEVELS", "OPTIMIZED", "REFERENCE", "STRICT", "UNOPTIMIZED"]

UNOPTIMIZED = "onnxruntime:off"
"""ORT_DISABLE_ALL: every node runs as it is written, with weights as they are written."""

OPTIMIZED = "onnxruntime:on"
"""ORT_ENABLE_ALL, the level at which users run models."""

LEVELS = (UNOPTIMIZED, OPTIMIZED)
"""The configurations in which a verification runs models, in this order."""

REFERENCE = "reference"
"""The reference evaluator of the package onnx."""

STRICT = "onnxruntime:strict"
"""ORT_DISABLE_ALL, every value of a narrow type rounded after each node."""

COARSE = "onnxruntime:coarse"
"""Like STRICT, but float16 adds 8 times as large rounding errors; numbers that float16 holds exactly stay exact."""
