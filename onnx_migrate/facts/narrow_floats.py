"""Whether a model computes in float16 or bfloat16, and in which of them."""

from __future__ import annotations

from collections.abc import Collection

import onnx
from onnx import TensorProto

from onnx_migrate.model.graphs import all_nodes, weight_tensors
from onnx_migrate.standard.retyping import TYPE_BY_ATTRIBUTE

__all__ = ["NARROW", "is_narrow", "names_type", "narrowest"]

NARROW = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})


def is_narrow(model: onnx.ModelProto) -> bool:
    """Return whether a model stores numbers of a narrow type, or declares a value of one."""
    return names_type(model, NARROW)


def names_type(model: onnx.ModelProto, kinds: Collection[int]) -> bool:
    """Return whether a model stores numbers of one of these element types, or declares a value of one."""
    values = (*model.graph.input, *model.graph.output, *model.graph.value_info)
    return (
        any(value.type.tensor_type.elem_type in kinds for value in values)
        # Weights need no declaration, so the values above may lack them.
        or any(tensor.data_type in kinds for tensor in weight_tensors(model))
        or any(
            attribute.name == TYPE_BY_ATTRIBUTE[node.op_type] and attribute.i in kinds
            for node in all_nodes(model)
            if node.op_type in TYPE_BY_ATTRIBUTE
            for attribute in node.attribute
        )
    )


def narrowest(model: onnx.ModelProto) -> int:
    """Return the narrow type of a model: bfloat16 if it has that, else float16; float32 for other models."""
    if not is_narrow(model):
        return TensorProto.FLOAT
    kinds = {tensor.data_type for tensor in weight_tensors(model)}
    kinds |= {
        attribute.i for node in all_nodes(model) if node.op_type == "Cast" for attribute in node.attribute
    }
    return TensorProto.BFLOAT16 if TensorProto.BFLOAT16 in kinds else TensorProto.FLOAT16
