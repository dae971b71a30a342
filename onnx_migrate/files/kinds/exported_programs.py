"""The result of torch.onnx.export(dynamo=True), and any other object with a ModelProto as `model_proto`."""

from __future__ import annotations

from typing import Any

import onnx

from onnx_migrate.files.kinds import ModelKind
from onnx_migrate.files.protos import structure_of
from onnx_migrate.model.weights import Weights

__all__ = ["KIND"]


class _ExportedProgram(ModelKind):
    title = "the result of torch.onnx.export(dynamo=True)"
    by_attribute = True

    def holds(self, source: object) -> bool:
        return isinstance(getattr(source, "model_proto", None), onnx.ModelProto)

    def structure(self, source: Any, weights: Weights) -> onnx.ModelProto:
        return structure_of(source.model_proto, weights)


KIND = _ExportedProgram()
