"""onnx.reference, for models that ONNX Runtime cannot load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx

from onnx_migrate.verify.evaluators.interface import EvaluationError, Evaluator, one_line
from onnx_migrate.verify.evaluators.runnable import Runnable

__all__ = ["LOADERS", "REFERENCE", "Reference"]

REFERENCE = "reference"


class Reference(Evaluator):
    """onnx.reference: slow, and wrong for Upsample and Resize.

    Callers do not use it for models that contain those (model_traits.contains_resize).
    """

    def __init__(self, runnable: Runnable) -> None:
        from onnx.external_data_helper import load_external_data_for_model
        from onnx.reference import ReferenceEvaluator

        self.name = f"onnx.reference {onnx.__version__}"
        proto = runnable.proto()
        try:
            if runnable.external_data_folder is not None:
                load_external_data_for_model(proto, str(runnable.external_data_folder))
            self._evaluator = ReferenceEvaluator(proto)
        except Exception as error:
            raise EvaluationError(one_line(str(error)), loading=True) from error

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run once. Raises EvaluationError, which never names a node: onnx.reference's errors do not."""
        try:
            values = self._evaluator.run(None, dict(inputs))
        except Exception as error:
            raise EvaluationError(one_line(f"{type(error).__name__}: {error}")) from error
        return dict(zip(self._evaluator.output_names, values, strict=True))


LOADERS = {REFERENCE: Reference}
