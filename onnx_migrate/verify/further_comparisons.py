"""The comparisons that follow where a result agrees with the original, each of models of one kind."""

from __future__ import annotations

from collections.abc import Callable

from onnx_migrate.model.model import Segment
from onnx_migrate.verdicts import Verdict
from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.precision.rounded_runs import compare_rounded
from onnx_migrate.verify.settings import Settings

__all__ = ["FURTHER"]

FURTHER: tuple[Callable[[Verdict, Segment[Runnable], Settings], Verdict], ...] = (compare_rounded,)
"""Each gets the verdict on models that agree, and returns it with its own finding."""
