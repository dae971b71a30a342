"""Types and shapes of the outputs of one node that a rewrite has written, after the inference of the whole model."""

from __future__ import annotations

from functools import lru_cache

import onnx
from onnx import AttributeProto, TensorProto, checker, defs, helper, shape_inference

from onnx_migrate.analysis.scope import Scope
from onnx_migrate.analysis.value_types import ValueType, value_type_of

__all__ = ["record_outputs"]

_SMALL = 64
"""Elements of a constant input up to which its values are given to the inference."""


def record_outputs(scope: Scope, node: onnx.NodeProto, opset: int) -> None:
    """Enter the types of a node's outputs that are not known yet into the scope's types; what does not follow stays out.

    `opset` is the version of the node's domain whose form the node has. Nodes with sub-graphs are left out.
    """
    missing = [name for name in node.output if name and scope.value_type(name).shape is None]
    if not missing or any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in node.attribute):
        return
    try:
        schema = defs.get_schema(node.op_type, opset, node.domain)
        found = shape_inference.infer_node_outputs(
            schema,
            node,
            # onnx before 1.17 looks up inputs that are left out too.
            {name: _type(_known(scope, name) if name else ValueType()) for name in node.input},
            {name: tensor for name in node.input if name and (tensor := _constant(scope, name)) is not None},
            opset_imports=[helper.make_opsetid(node.domain, opset)],
        )
    except (
        defs.SchemaError,
        shape_inference.InferenceError,
        checker.ValidationError,  # of a deprecated operator
        ValueError,  # of sequences, say
    ):
        return
    for name in missing:
        if name in found and (
            found[name].tensor_type.HasField("shape") or scope.value_type(name).dtype is None
        ):
            scope.record_type(name, value_type_of(found[name]))


def _known(scope: Scope, name: str) -> ValueType:
    known = scope.value_type(name)
    if known.shape is None and (array := scope.constant(name)) is not None:
        return ValueType(int(helper.np_dtype_to_tensor_dtype(array.dtype)), tuple(array.shape))
    return known


@lru_cache(maxsize=4096)
def _type(known: ValueType) -> onnx.TypeProto:
    if known.dtype is None:
        return onnx.TypeProto()
    if known.shape is None or not known.symbols:
        return helper.make_tensor_type_proto(known.dtype, known.shape)
    dims = [
        size if size is not None else name or None
        for size, name in zip(known.shape, known.symbols, strict=True)
    ]
    return helper.make_tensor_type_proto(known.dtype, dims)


def _constant(scope: Scope, name: str) -> TensorProto | None:
    array = scope.constant(name)
    return None if array is None or array.size > _SMALL else onnx.numpy_helper.from_array(array, name)
