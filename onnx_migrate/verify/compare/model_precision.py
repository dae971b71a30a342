"""How coarse the numbers are that a model computes with, for comparisons in another runtime or at another size."""

from __future__ import annotations

import onnx
from onnx import AttributeProto, TensorProto

from onnx_migrate.model.graphs import all_nodes, initializer_types

__all__ = ["coarsest_eps", "is_quantized"]

_EPS: dict[int, float] = {
    TensorProto.FLOAT: 2.0**-23,
    TensorProto.FLOAT16: 2.0**-10,
    TensorProto.BFLOAT16: 2.0**-7,
    TensorProto.DOUBLE: 2.0**-52,
}
"""The distance from 1 to the next larger number of a type."""


def coarsest_eps(model: onnx.ModelProto) -> float:
    """Return the largest eps of the float types of inputs, constants and casts; 0 without any."""
    kinds = {dtype for _, dtype, _ in initializer_types(model.graph)}
    kinds.update(value.type.tensor_type.elem_type for value in model.graph.input)
    for node in all_nodes(model):
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                kinds.add(attribute.t.data_type)
            elif node.op_type == "Cast" and attribute.name == "to":
                kinds.add(attribute.i)
    return max((_EPS[kind] for kind in kinds if kind in _EPS), default=0.0)


def is_quantized(model: onnx.ModelProto) -> bool:
    """Whether the model rounds to integers by design, so that a rounding error can become a quantisation step."""
    return any(
        "QLinear" in n.op_type or "Quantize" in n.op_type or "Integer" in n.op_type for n in all_nodes(model)
    )
