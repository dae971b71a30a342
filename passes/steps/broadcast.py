"""Broadcasting: attributes define it below opset 7; below 8 Expand is missing, and Max, Mean, Min and Sum do not broadcast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.plugins import Rewriter, adapter, compatible
from onnx_migrate.rewrite.bounded_arrays import bounded_dims

_MULTIPLIED = (
    TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32,
    TensorProto.UINT64,
)  # fmt: skip
"""The element types of Mul-7."""

_SHOWN = 16
"""The most numbers of a shape that a message shows."""

_SMALL = (TensorProto.INT8, TensorProto.INT16, TensorProto.UINT8, TensorProto.UINT16)

compatible("Gemm", 6, reason="only the description changed")


@adapter("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor", to=7)
def broadcast_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The second operand gets trailing axes of length 1, which replace the attribute `axis`.

    What changes: `broadcast` and `axis` are removed. Without `axis` the shapes were aligned at the last axis, as in NumPy.
    Such a node only loses the attributes.

    Limits: if the rank of the first operand is unknown, the second is reshaped at run time. If its own rank is unknown too,
    this needs operators of opset 10.
    """
    axis = rw.pop("axis")
    if rw.pop("broadcast", 0) and axis is not None:
        node.input[1] = _align(rw, node.input[0], node.input[1], axis)


@adapter("Gemm", to=7)
def gemm_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`broadcast` is removed: C is always broadcast, aligned at the last axis as before."""
    rw.drop("broadcast")


@adapter("PRelu", to=7)
def prelu_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """A slope per channel gets an axis of length 1 for every axis after the channels.

    Why equal: before opset 7 a slope had one element, or one per channel (axis 1). From opset 7 on it is broadcast and
    aligned at the input's last axis.
    """
    slope = rw.shape(node.input[1])
    if slope is None or (len(slope) == 1 and slope != (1,)):
        node.input[1] = _align(rw, node.input[0], node.input[1], 1)


def _align(rw: Rewriter, value: str, operand: str, axis: int) -> str:
    """Return `operand` with trailing axes of length 1, so that its first axis aligns with `axis` of `value`."""
    rank, own = rw.rank(value), rw.rank(operand)
    if axis == -1:
        return operand
    if axis < 0:
        axis += rw.need_rank(value)
    if rank is not None and own is not None:
        axes = list(range(own, rank - axis))
        return rw.before("Unsqueeze", [operand], hint="aligned", axes=axes) if axes else operand
    shape = rw.before("Shape", [value], hint="shape")
    own_shape = rw.before("Shape", [operand], hint="operand_shape")
    if own is not None:
        # A Slice clamps its end, so the largest int32 reaches the end of any axis.
        tail = rw.before("Slice", [shape], hint="tail", starts=[axis + own], ends=[2**31 - 1])
    elif rw.target >= 10:
        rw.version = 10
        own_rank = rw.before("Shape", [own_shape], hint="operand_rank")
        start = rw.before("Add", [own_rank, rw.constant(np.array([axis]), "axis")], hint="start")
        tail = rw.before("Slice", [shape, start, rw.constant(np.array([2**31 - 1]), "end")], hint="tail")
    else:
        rw.need_rank(operand)
    none = rw.before("Mul", [tail, rw.constant(np.array([0]), "zero")], hint="zeros")
    ones = rw.before("Add", [none, rw.constant(np.array([1]), "one")], hint="ones")
    wanted = rw.before("Concat", [own_shape, ones], hint="aligned_shape", axis=0)
    return rw.before("Reshape", [operand, wanted], hint="aligned")


@formula("Expand", since=8, types=LostTypes.OWN)
def expand(op: Op, x: Value, shape: Value) -> Value:
    """Expand begins with opset 8, so Tile repeats the elements, or a broadcasting operator does.

    What changes: the node becomes a Tile if the new shape is a constant and the input's lengths are fixed. Otherwise a Tile
    makes ones of the new shape at run time, and the input is multiplied by them. A bool input is compared with True instead.

    Why equal: Tile moves elements. x · 1 is x for every x, including NaN, infinities and negative zero. "x and True" is x
    too.

    Limits: for types without Mul, such as strings, the shape must be a constant and the input's lengths must be fixed. For
    other cases the element type must be known.
    """
    array = shape.constant
    if array is None:
        return _multiplied(op, x, shape)
    own = x.shape
    if array.ndim != 1 or (array < 0).any() or not _broadcasts(own, array):
        op.refuse(
            f"cannot be expanded to {_brief(array)}, which is not a shape that its input"
            f" {list(own) if own is not None else ''} broadcasts to",
            code="invalid-node",
        )
    return _broadcast(op, x, [int(size) for size in array.reshape(-1)])


def _broadcasts(own: tuple[int | None, ...] | None, shape: np.ndarray[Any, Any]) -> bool:
    pairs = zip(reversed(own or ()), reversed(shape.tolist()), strict=False)
    return all(a is None or a == b or 1 in (a, b) for a, b in pairs)


def _brief(shape: np.ndarray[Any, Any]) -> str:
    return (
        str(shape.tolist()) if shape.size <= _SHOWN else f"{shape.size} numbers of shape {list(shape.shape)}"
    )


def _multiplied(op: Op, value: Value, shape: Value) -> Value:
    """Return the product of a value and ones of a shape computed at run time."""
    dtype = value.need_dtype()
    kind = TensorProto.INT32 if dtype in _SMALL else dtype
    if dtype not in (*_MULTIPLIED, *_SMALL, TensorProto.BOOL):
        shape.need_constant("shape")
    unit = op.constant(np.ones(1, helper.tensor_dtype_to_np_dtype(kind)))
    ones = op.Tile(op.Reshape(unit, shape * np.array([0]) + np.array([1])), shape)
    if dtype == TensorProto.BOOL:
        return value & ones
    return (value.cast(kind) * ones).cast(dtype)


def _broadcast(op: Op, value: Value, shape: Sequence[int]) -> Value:
    """Return the value in the shape that it and `shape` broadcast to, without Expand."""
    own = value.shape
    if value.static is not None:
        return _tiled(op, value, value.static, shape)
    sizes = list(shape)
    for back in range(1, min(len(own or ()), len(shape)) + 1):
        if own is not None and own[-back] == shape[-back]:
            sizes[-back] = 1
    dtype = value.need_dtype()
    if dtype == TensorProto.BOOL:
        return value & np.ones(bounded_dims(sizes), bool)
    if dtype not in (*_MULTIPLIED, *_SMALL):
        value.need_static()
    kind = TensorProto.INT32 if dtype in _SMALL else dtype
    return (value.cast(kind) * np.ones(bounded_dims(sizes), helper.tensor_dtype_to_np_dtype(kind))).cast(
        dtype
    )


def _tiled(op: Op, value: Value, own: Sequence[int], shape: Sequence[int]) -> Value:
    result = np.broadcast_shapes(tuple(own), tuple(shape))
    if result == tuple(own):
        return value
    # An empty axis has no number of repeats, as it would divide by 0.
    if math.prod(result) == 0:
        return op.constant(np.zeros(result, value.numpy_type))
    padded = [1] * (len(result) - len(own)) + list(own)
    if len(padded) > len(own):
        value = value.reshape(*padded)
    repeats = [new // old for new, old in zip(result, padded, strict=True)]
    return value if all(repeat == 1 for repeat in repeats) else op.Tile(value, repeats)


@formula("Sum", "Mean", since=8)
def sum_8_down(op: Op, *values: Value) -> Value:
    """Below opset 8 Sum does not broadcast, so Add combines tensors of different shapes pair by pair.

    Why equal: ONNX Runtime adds in this order. Measured results were equal bit for bit.
    """
    if _same_shape(values):
        return op.itself(*values)
    whole = reduce(add, values)
    if op.operator == "Sum":
        return whole
    kind = whole.numpy_type
    return whole * np.asarray(np.array(1, kind) / np.array(len(values), kind))


@formula("Max", "Min", since=8, exactness=EQUIVALENT)
def extreme_8_down(op: Op, *values: Value) -> Value:
    """Below opset 8 Max and Min do not broadcast, so tensors of different shapes get one shape first.

    What changes: a Tile repeats each tensor to the common shape, unless the shapes are known to be equal. If a length is
    known only at run time, each tensor is multiplied by ones of the common shape.

    Why equal: this is the definition of broadcasting. The result for a zero and a negative zero may be either of them. ONNX
    Runtime's kernels for one shape and for several differ there.

    Limits: if a length is not fixed, the element type must be known.
    """
    if _same_shape(values):
        return op.itself(*values)
    shapes = [value.static for value in values]
    if None not in shapes:
        result = np.broadcast_shapes(*(shape for shape in shapes if shape is not None))
        return op.itself(*[_broadcast(op, value, result) for value in values])
    # Comparisons broadcast from opset 7 on, so an Or of them has the common shape.
    truth = values[0] < values[0]
    for value in values[1:]:
        truth = truth | (value < value)
    ones = op.Cast(truth | ~truth, to=values[0].need_dtype())
    return op.itself(*[value * ones for value in values])


def _same_shape(values: Sequence[Value]) -> bool:
    first = values[0].static
    return len(values) == 1 or (first is not None and all(value.static == first for value in values))
