"""Shapes that follow from known values and that onnx's inference leaves open, as that of a Reshape to a computed shape."""

from __future__ import annotations

from dataclasses import replace

import onnx
from onnx import TensorProto

from onnx_migrate.analysis.known_values import KnownValues
from onnx_migrate.analysis.scope import Scope
from onnx_migrate.analysis.value_types import MOST_AXES, ValueType
from onnx_migrate.analysis.written_types import record_outputs
from onnx_migrate.spec.schema import is_onnx

__all__ = ["refine_outputs"]

_SHAPED = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}
"""Operators with the index of the input that holds the shape of their output."""
_LABELS = {
    "values_floats": TensorProto.FLOAT,
    "values_int64s": TensorProto.INT64,
    "values_strings": TensorProto.STRING,
}
"""Attributes of LabelEncoder that list what it gives out, with its element type."""


def refine_outputs(scope: Scope, node: onnx.NodeProto, opset: int, values: KnownValues) -> None:
    """Enter the shapes of a node's outputs of unknown rank, if they follow from its inputs and from what is known of these.

    `opset` is the version of ai.onnx whose form the node has. Of nodes of other domains only LabelEncoder is looked at, which
    the inference of the whole model leaves out (onnx_inference.py).
    """
    if node.domain == "ai.onnx.ml" and node.op_type == "LabelEncoder":
        _refine_label_encoder(scope, node)
        return
    if not is_onnx(node.domain) or not any(
        name and scope.value_type(name).shape is None and not scope.value_type(name).container
        for name in node.output
    ):
        return
    at = _SHAPED.get(node.op_type)
    if at is not None and len(node.input) > at:
        shape = _dims(scope, node, node.input[at], values)
        if shape is not None:
            dtype = scope.value_type(node.output[0]).dtype
            if dtype is None and at:
                dtype = scope.value_type(node.input[0]).dtype
            scope.record_type(node.output[0], ValueType(dtype, shape))
            return
    record_outputs(scope, node, opset)


def _refine_label_encoder(scope: Scope, node: onnx.NodeProto) -> None:
    """Enter the shape of the input, and the element type of the values that the attributes list."""
    if not node.input or not node.output or scope.value_type(node.output[0]).dtype is not None:
        return
    known = scope.value_type(node.input[0])
    dtype: int | None = next((_LABELS[a.name] for a in node.attribute if a.name in _LABELS), None)
    for attribute in node.attribute:
        if attribute.name == "values_tensor":
            dtype = attribute.t.data_type
        elif (
            attribute.name == "classes_strings" and known.dtype is not None
        ):  # of version 1, which maps both ways
            dtype = TensorProto.INT64 if known.dtype == TensorProto.STRING else TensorProto.STRING
    scope.record_type(node.output[0], replace(known, dtype=dtype))


def _dims(
    scope: Scope, node: onnx.NodeProto, name: str, values: KnownValues
) -> tuple[int | None, ...] | None:
    """Return the dims that a shape gives, None for each that is not known; None where not even the rank is."""
    found = values.partial(name)
    if found is not None and found.values.ndim == 1:
        dims = [
            int(size) if known and (size > 0 or node.op_type == "ConstantOfShape") else None
            for size, known in zip(found.values, found.known, strict=True)
        ]
    else:
        length = scope.value_type(name).shape
        if length is None or len(length) != 1 or length[0] is None or length[0] > MOST_AXES:
            return None
        dims = [None] * length[0]
    if node.op_type == "Expand":
        own = scope.value_type(node.input[0]).shape
        if own is None:
            return None
        # A dim that is larger than 1 is the one of the result; what is 1 or open depends on the other operand.
        longer = max(len(own), len(dims))
        one, other = [1] * (longer - len(own)) + list(own), [1] * (longer - len(dims)) + list(dims)
        pairs = zip(one, other, strict=True)
        return tuple(a if a and a > 1 else b if b and b > 1 else 1 if a == b == 1 else None for a, b in pairs)
    return tuple(dims)
