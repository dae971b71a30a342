"""onnx.reference, for models that ONNX Runtime cannot load."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import onnx

from onnx_migrate.verify.evaluators.interface import EvaluationError, Evaluator, one_line
from onnx_migrate.verify.evaluators.runnable import Runnable

__all__ = ["LOADERS", "REFERENCE", "Reference"]

REFERENCE = "reference"

_PATIENCE = 20.0
"""Seconds that one run may take, checked between nodes: onnx.reference computes a convolution in Python."""


class Reference(Evaluator):
    """onnx.reference: slow, and wrong for Upsample and Resize.

    Callers do not use it for models that contain those (model_traits.contains_resize).
    """

    def __init__(self, runnable: Runnable) -> None:
        from onnx.external_data_helper import load_external_data_for_model

        self.name = f"onnx.reference {onnx.__version__}"
        proto = runnable.proto()
        try:
            if runnable.external_data_folder is not None:
                load_external_data_for_model(proto, str(runnable.external_data_folder))
            self._evaluator = _impatient_evaluator(proto)
        except Exception as error:
            raise EvaluationError(one_line(str(error)), loading=True) from error

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once. Raises EvaluationError, which never names a node: onnx.reference's errors do not."""
        self._evaluator.deadline = time.perf_counter() + _PATIENCE
        try:
            values = self._evaluator.run(None, dict(inputs))
        except _OutOfPatience as error:
            message = f"{self.name} is too slow for it: not done after {_PATIENCE:g} s"
            raise EvaluationError(message, limit=True) from error
        except Exception as error:
            raise EvaluationError(one_line(f"{type(error).__name__}: {error}")) from error
        return dict(zip(self._evaluator.output_names, values, strict=True))


class _OutOfPatience(Exception):
    """A run took too long."""


def _impatient_evaluator(proto: onnx.ModelProto) -> Any:
    from onnx.reference import ReferenceEvaluator

    class Impatient(ReferenceEvaluator):
        deadline = float("inf")

        def _log(self, level: int, pattern: str, *args: Any) -> None:
            """Is called before each node."""
            if time.perf_counter() > self.deadline:
                raise _OutOfPatience

    return Impatient(proto)


LOADERS = {REFERENCE: Reference}
