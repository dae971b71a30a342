"""onnx.reference, for models that ONNX Runtime cannot load."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import onnx

from onnx_migrate.errors import LoadError
from onnx_migrate.model.tensors import tensors
from onnx_migrate.verify.evaluators.configurations import REFERENCE
from onnx_migrate.verify.evaluators.interface import (
    EvaluationError,
    Evaluator,
    Runnable,
    one_line,
    raise_if_out_of_memory,
)

__all__ = ["LOADERS", "Reference"]

_PATIENCE = 20.0
"""Seconds that one run may take, checked between nodes: onnx.reference computes a convolution in Python."""


class Reference(Evaluator):
    """onnx.reference: slow, and wrong for Upsample, Resize and old versions of some operators.

    Callers do not use it for models that contain those (model_traits.miscomputed_in_reference).
    """

    def __init__(self, runnable: Runnable) -> None:
        self.name = f"onnx.reference {onnx.__version__}"
        proto = runnable.proto()
        try:
            for tensor in tensors(proto):
                tensor.CopyFrom(runnable.inlined(tensor))
            self._evaluator = _impatient_evaluator(proto)
        except Exception as error:
            raise_if_out_of_memory(error)
            if isinstance(error, LoadError) and runnable.weights is not None:
                raise  # a file is not what it was, which says nothing of the model
            raise EvaluationError(one_line(str(error)), loading=True) from error

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once. Raises EvaluationError, which never names a node: onnx.reference's errors do not."""
        self._evaluator.deadline = time.perf_counter() + _PATIENCE
        try:
            values = self._evaluator.run(None, dict(inputs))
        except _OutOfPatience as error:
            message = f"{self.name} is too slow for it: timed out after {_PATIENCE:g} s"
            raise EvaluationError(message, limit=True) from error
        except Exception as error:
            raise_if_out_of_memory(error)
            raise EvaluationError(one_line(f"{type(error).__name__}: {error}")) from error
        return dict(zip(self._evaluator.output_names, values, strict=True))


class _OutOfPatience(Exception):
    """A run took too long."""


def _impatient_evaluator(proto: onnx.ModelProto) -> Any:
    import numpy as np
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class PRelu(OpRun):
        """onnx.reference broadcasts as from opset 7 on; before, a slope was one element or one per channel, axis 1."""

        op_domain = ""

        def _run(self, x: Any, slope: Any) -> tuple[Any]:
            if self.run_params["opsets"].get("", 7) < 7 and slope.ndim == 1 and slope.size > 1 and x.ndim > 1:
                slope = slope.reshape(-1, *[1] * (x.ndim - 2))
            return (np.where(x > 0, x, x * slope).astype(x.dtype),)

    class Impatient(ReferenceEvaluator):
        deadline = float("inf")

        def __init__(self, proto: Any, **options: Any) -> None:
            # Functions are not given the new operators of the model.
            super().__init__(proto, **{"new_ops": [PRelu], **options})

        def _log(self, level: int, pattern: str, *args: Any) -> None:
            """Is called before each node."""
            if time.perf_counter() > self.deadline:
                raise _OutOfPatience

    return Impatient(proto)


LOADERS = {REFERENCE: Reference}
