"""Runtimes that can run a model: ONNX Runtime, and ONNX's reference evaluator."""

from __future__ import annotations

from onnx_migrate.verify.evaluators.interface import (
    EvaluationError,
    Evaluator,
    Runnable,
    without_static_shapes,
)
from onnx_migrate.verify.evaluators.onnxruntime import LEVELS, OnnxRuntime
from onnx_migrate.verify.evaluators.reference import Reference

__all__ = [
    "LEVELS",
    "EvaluationError",
    "Evaluator",
    "OnnxRuntime",
    "Reference",
    "Runnable",
    "open_model",
    "without_static_shapes",
]


def open_model(runnable: Runnable, kind: str) -> Evaluator:
    """Load a model with the evaluator named: "off" and "on" are ONNX Runtime's levels, else "reference"."""
    return Reference(runnable) if kind == "reference" else OnnxRuntime(runnable, kind)
