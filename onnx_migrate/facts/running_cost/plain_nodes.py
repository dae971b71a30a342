"""The outputs of a node without sub-graphs: their sizes and element types, and the numbers of small ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from onnx_migrate.facts.running_cost.node_reading import Node
from onnx_migrate.facts.running_cost.operations import einsum_dims
from onnx_migrate.facts.running_cost.output_dims import output_dims
from onnx_migrate.facts.running_cost.value_estimate import Array, ValueEstimate
from onnx_migrate.facts.shape_arithmetic import LARGEST, OPERATORS, compute

__all__ = ["constant_of", "of_tensor", "plain_outputs"]

_TRUTH = frozenset(
    ("And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor")
)
_PLACES = frozenset(("ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "SequenceLength", "Shape", "Size"))
"""Operators whose first output is of int64."""

_GIVEN_TYPE = {
    "Cast": "to",
    "EyeLike": "dtype",
    "Multinomial": "dtype",
    "RandomNormal": "dtype",
    "RandomUniform": "dtype",
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"), "output_datatype"),
}
"""Attributes that name the element type of the output."""

_TYPED_BY_INPUT = {"OneHot": 2, "Where": 1, "CastLike": 1}
"""Operators whose first output has the element type of another input than the first."""

_SAME_IN_OTHERS = frozenset(("MaxPool", "Split", "TopK"))
"""Operators whose further outputs have the sizes of the first."""


def plain_outputs(node: Node, *, constant: bool) -> list[ValueEstimate]:
    """Return the estimates of the outputs of a node of ai.onnx without sub-graphs; `constant` says that all inputs are so."""
    if node.operator in _SEQUENCES:
        return [_SEQUENCES[node.operator](node, constant)] * node.outputs
    array = _numbers(node)
    if array is not None:
        return [ValueEstimate.of_array(array, constant=constant)] * node.outputs
    dims = einsum_dims(node) if node.operator == "Einsum" else output_dims(node)
    first = ValueEstimate(dims, _dtype(node), constant=constant, text_bytes=_text_bytes(node))
    rest = first if node.operator in _SAME_IN_OTHERS else ValueEstimate(constant=constant)
    return [first, *[rest] * (node.outputs - 1)]


def constant_of(node: onnx.NodeProto, attributes: Mapping[str, Any]) -> ValueEstimate:
    """Return the estimate of the value of a Constant."""
    for name, value in attributes.items():
        if name == "value":
            return of_tensor(value)
        if name == "sparse_value":
            return ValueEstimate(tuple(value.dims), value.values.data_type, constant=True)
        if name.startswith("value_"):
            kind = np.float32 if "float" in name else np.int64 if "int" in name else np.object_
            return ValueEstimate.of_array(np.array(value, kind), constant=True)
    return ValueEstimate(constant=True)


def of_tensor(tensor: TensorProto) -> ValueEstimate:
    """Return the estimate of a stored tensor, with the numbers of a small one whose data is in the model."""
    dims = tuple(tensor.dims)
    elements = int(np.prod(dims, dtype=object)) if dims else 1
    if elements > LARGEST or tensor.data_location == TensorProto.EXTERNAL:
        return ValueEstimate(dims, tensor.data_type, constant=True)
    try:
        return ValueEstimate.of_array(numpy_helper.to_array(tensor), constant=True)
    except (ValueError, TypeError, KeyError):  # of a type that numpy does not have, or of too little data
        return ValueEstimate(dims, tensor.data_type, constant=True)


def _dtype(node: Node) -> int:
    operator = node.operator
    if operator in _TRUTH:
        return TensorProto.BOOL
    if operator in _PLACES:
        return TensorProto.INT64
    if operator in _GIVEN_TYPE:
        return node.number(_GIVEN_TYPE[operator], TensorProto.FLOAT)
    if operator == "ConstantOfShape":
        return int(node.attributes["value"].data_type) if "value" in node.attributes else TensorProto.FLOAT
    value = node.value(_TYPED_BY_INPUT.get(operator, 0))
    return value.dtype if value is not None else 0


def _text_bytes(node: Node) -> int:
    lengths = [value.text_bytes for value in node.inputs if value is not None]
    return sum(lengths) if node.operator == "StringConcat" else max(lengths, default=0)


def _numbers(node: Node) -> Array | None:
    """Return the numbers of the first output, if it is small and follows from known numbers."""
    if node.operator in ("Shape", "Size"):
        return _sizes(node)
    if node.operator not in OPERATORS and node.operator not in _MORE:
        return None
    arrays = [None if value is None else value.values for value in node.inputs]
    if any(array is None and value is not None for array, value in zip(arrays, node.inputs, strict=True)):
        return None
    if node.operator in OPERATORS:
        return compute(node.operator, dict(node.attributes), arrays)
    # Small numbers decide about sizes; large arrays are data, and computing them would cost as much as a run.
    if sum(array.size for array in arrays if array is not None) > LARGEST:
        return None
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(_MORE[node.operator](node, *arrays))
    except (ValueError, IndexError, TypeError, KeyError, OverflowError):
        return None
    return result if result.size <= LARGEST else None


def _sizes(node: Node) -> Array | None:
    dims = node.dims()
    if dims is None:
        return None
    if node.operator == "Size":
        return _int64(int(np.prod(dims, dtype=object)) if dims else 1)
    return _int64(list(dims[slice(node.number("start", 0), node.attributes.get("end"))]))


def _int64(numbers: int | list[int]) -> Array | None:
    """Return whole numbers as an array; None if one is too large for int64."""
    try:
        return np.array(numbers, np.int64)
    except OverflowError:
        return None


def _power(_: Node, base: Array, exponent: Array) -> Array:
    return np.power(base.astype(np.float64), exponent.astype(np.float64)).astype(base.dtype)


def _shifted(node: Node, value: Array, count: Array) -> Array:
    to_left = node.attributes.get("direction") == b"LEFT"
    return np.asarray(np.left_shift(value, count) if to_left else np.right_shift(value, count))


def _clipped(node: Node, value: Array, low: Array | None = None, high: Array | None = None) -> Array:
    low = low if low is not None else node.attributes.get("min")
    high = high if high is not None else node.attributes.get("max")
    return np.asarray(value if low is None and high is None else np.clip(value, low, high))


_MORE: dict[str, Callable[..., Any]] = {
    "BitShift": _shifted,
    "Clip": _clipped,
    "Dropout": lambda _, x, *rest: x,
    "Exp": lambda _, x: np.exp(x),
    "Log": lambda _, x: np.log(x),
    "MatMul": lambda _, a, b: a @ b,
    "Mean": lambda _, *parts: (sum(parts) / len(parts)).astype(parts[0].dtype),
    "Pow": _power,
    "Reciprocal": lambda _, x: 1 / x,
    "Relu": lambda _, x: np.maximum(x, 0),
    "Round": lambda _, x: np.round(x),
    "Sign": lambda _, x: np.sign(x),
    "Sum": lambda _, *parts: reduce(np.add, parts),
}
"""Operators that exporters do not compute sizes with, and that a small constant may pass through all the same."""


def _joined(parts: Sequence[ValueEstimate | None], constant: bool) -> ValueEstimate:
    """Return a sequence of these tensors."""
    total = sum(part.bytes for part in parts if part is not None)
    return ValueEstimate(constant=constant, items=len(parts), item_bytes=total)


def _inserted(node: Node, constant: bool) -> ValueEstimate:
    sequence, tensor = node.value(0), node.value(1)
    if sequence is None or sequence.items is None or tensor is None:
        return ValueEstimate(constant=constant)
    return ValueEstimate(
        constant=constant, items=sequence.items + 1, item_bytes=sequence.item_bytes + tensor.bytes + _TENSOR
    )


def _split(node: Node, constant: bool) -> ValueEstimate:
    value = node.value(0)
    if value is None or value.dims is None or node.has_input(1):
        return ValueEstimate(constant=constant)
    axis = node.number("axis", 0)
    length = value.dims[axis] if -len(value.dims) <= axis < len(value.dims) else 0
    return ValueEstimate(constant=constant, items=length, item_bytes=value.bytes + length * _TENSOR)


def _length(node: Node, constant: bool) -> ValueEstimate:
    sequence = node.value(0)
    array = None if sequence is None or sequence.items is None else _int64(sequence.items)
    return (
        ValueEstimate((), TensorProto.INT64, constant=constant)
        if array is None
        else ValueEstimate.of_array(array, constant=constant)
    )


_TENSOR = 64
"""The least bytes that ONNX Runtime uses for a tensor in addition to its elements."""

_SEQUENCES: dict[str, Callable[[Node, bool], ValueEstimate]] = {
    "ConcatFromSequence": lambda node, constant: ValueEstimate(constant=constant),
    "SequenceConstruct": lambda node, constant: _joined(node.inputs, constant),
    "SequenceEmpty": lambda node, constant: ValueEstimate(constant=constant, items=0),
    "SequenceInsert": _inserted,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
