"""The types of values that become inputs and outputs of smaller models."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.cached import cached_property
from onnx_migrate.facts.onnx_inference import InferenceError, infer_shapes, skeleton
from onnx_migrate.facts.shapes import contradict, dims_of
from onnx_migrate.reduction.candidate import Candidate

__all__ = ["Ports", "array_type"]


def array_type(name: str, value: Any, element: int = 0) -> onnx.ValueInfoProto | None:
    """Return the declaration of a tensor with these dims; None for a value that is no tensor of a type of ONNX.

    `element` is its element type if that is known: NumPy has no name for some types.
    """
    if not isinstance(value, np.ndarray):
        return None
    if not element:
        try:
            text = value.dtype.kind in "OSU"
            element = TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(value.dtype)
        except (KeyError, ValueError):
            return None
    return helper.make_tensor_value_info(name, element, value.shape)


class Ports:
    """The types of the values of one model's main graph: as declared, inferred, or recorded."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate

    def declared(self, name: str) -> onnx.ValueInfoProto | None:
        """Return the declaration of a value as an input or output; None if its type is not known."""
        candidate = self._candidate
        recorded = candidate.feed.get(name) if name in candidate.feed else candidate.values.array(name)
        inferred = self._inferred.get(name)
        recorded_dims = recorded.shape if isinstance(recorded, np.ndarray) else None
        # Runtimes only warn of a value with other dims than declared.
        if candidate.is_static or inferred is None or contradict(dims_of(inferred), recorded_dims):
            element = inferred.type.tensor_type.elem_type if inferred is not None else 0
            return array_type(name, recorded, element) or (inferred if _is_typed(inferred) else None)
        return inferred if _is_typed(inferred) else array_type(name, recorded)

    @cached_property
    def _inferred(self) -> dict[str, onnx.ValueInfoProto]:
        proto = self._candidate.proto
        try:
            graph = infer_shapes(skeleton(proto)).graph
        except InferenceError:
            graph = proto.graph
        types = {value.name: _without_unknown_symbols(value) for value in graph.value_info}
        return types | {
            value.name: value for value in (*graph.output, *graph.input) if value.type.WhichOneof("value")
        }


def _is_typed(value: onnx.ValueInfoProto | None) -> bool:
    if value is None or value.type.WhichOneof("value") is None:
        return False
    tensor = value.type.tensor_type
    return value.type.WhichOneof("value") != "tensor_type" or bool(
        tensor.elem_type and tensor.HasField("shape")
    )


def _without_unknown_symbols(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    """Remove the symbols that onnx invents for lengths that it does not know, in place."""
    for dim in value.type.tensor_type.shape.dim:
        if dim.dim_param.startswith("unk__"):
            dim.Clear()
    return value
