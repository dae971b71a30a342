"""Arithmetic that replaces quantisation, as runtimes compute it: in float32, with scales and zero points broadcast."""

from __future__ import annotations

import math

import numpy as np
from onnx import helper

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value
from onnx_migrate.rewrite.bounded_arrays import bounded
from onnx_migrate.standard.element_types import FIRST_OPSET, type_name

__all__ = [
    "dequantize",
    "is_per_tensor",
    "is_widened",
    "quantize",
    "refuse_missing_type",
    "round_to_even",
    "saturate",
    "spread",
]

_T = TensorProto


def refuse_missing_type(op: Op, dtype: int | None) -> None:
    """Refuse with `no-such-type` an element type that opset `op.version` does not have; None is any type."""
    if dtype is not None and FIRST_OPSET.get(dtype, 1) > op.version:
        op.refuse(
            f"the element type {type_name(dtype)} does not exist below opset {FIRST_OPSET[dtype]}",
            code="no-such-type",
            hint="convert the model to another element type first",
        )


def is_widened(value: Value) -> bool:
    """Return whether a quantised value holds floating point numbers: a constant of 8 bits or less that was widened."""
    return value.dtype in (_T.FLOAT16, _T.FLOAT)


def is_per_tensor(scale: Value) -> bool:
    """Return whether a scale has one element; refuses with `needs-rank` if it may have any number."""
    return scale.need_rank() == 0 or scale.shape == (1,)


def dequantize(op: Op, value: Value, scale: Value, zero_point: Value | None, dtype: int) -> Value:
    """Return `(value - zero_point) * scale`, computed in float32, in element type `dtype`.

    The difference is one of int32, which wraps around, as in ONNX Runtime's kernels.
    """
    _refuse_other_size(op, scale, zero_point)
    zero = None if zero_point is None else op.rw.constant_value(zero_point.name)
    if zero_point is None or (zero is not None and not zero.any()) or is_widened(value):
        number = value.cast(_T.FLOAT)
    else:
        wide = value.cast(_T.INT32)
        number = (wide - spread(op, zero_point.cast(_T.INT32), value)).cast(_T.FLOAT)
    factor = spread(op, scale.cast(_T.FLOAT), value)
    array = op.rw.constant_value(scale.name)
    if array is not None and array.shape == () and array == 1 and dtype == _T.FLOAT:
        return number
    return (number * factor).cast(dtype)


def quantize(op: Op, value: Value, scale: Value, zero_point: Value | None, dtype: int) -> Value:
    """Return `saturate(round(value / scale) + zero_point)`, computed in float32; `dtype` is an integer type."""
    _refuse_other_size(op, scale, zero_point)
    divisor = spread(op, scale.cast(_T.FLOAT), value)
    rounded = round_to_even(op, value.cast(_T.FLOAT) / divisor)
    if zero_point is not None:
        rounded = rounded + spread(op, zero_point.cast(_T.FLOAT), value)
    return saturate(op, rounded, dtype)


def _refuse_other_size(op: Op, scale: Value, zero_point: Value | None) -> None:
    """Refuse with `invalid-node` a zero point of more or fewer elements than the scale."""
    first, other = scale.static, (scale if zero_point is None else zero_point).static
    if first is not None and other is not None and math.prod(first) != math.prod(other):
        op.refuse(
            f"has a scale of shape {list(first)} and a zero point of shape {list(other)}",
            code="invalid-node",
            hint="a zero point has as many elements as the scale",
        )


def saturate(op: Op, value: Value, dtype: int) -> Value:
    """Return whole float32 numbers as integers of a type; numbers beyond its range become the nearest end.

    NaN becomes the lower end, as in ONNX Runtime's kernels; the standard leaves it open.
    """
    info = np.iinfo(helper.tensor_dtype_to_np_dtype(dtype))
    low = op.constant(np.float32(info.min))
    above = low < value
    if op.target >= 9:
        return op.Min(op.Where(above, value, low), np.array(info.max, np.float32)).cast(dtype)
    # Below there is no Where. Integers are selected by products, which need no fixed shape, and hide what NaN is cast to.
    whole = op.Cast(op.Clip(value, info.min, info.max), to=_T.INT32)
    return op.select_without_where(above, whole, op.constant(np.int32(info.min))).cast(dtype)


def round_to_even(op: Op, value: Value) -> Value:
    """Return float32 numbers rounded to the nearest whole number, halves to the even one."""
    if op.version >= 11:
        return op.Round(value)
    half, two, unit = (op.constant(np.float32(number)) for number in (0.5, 2, 1))
    floor = op.Floor(value)
    rest = value - floor
    odd = op.Floor(floor * half) * two < floor
    above, below = half < rest, rest < half
    up = (above | odd & ~below).cast(_T.FLOAT)
    return floor + up * unit


def spread(op: Op, value: Value, data: Value) -> Value:
    """Return a scale or zero point in a shape that is broadcast to the data, by the node's `axis` and `block_size`."""
    axis, block = op.rw.get("axis", 1), op.rw.get("block_size", 0)
    if block:
        return op.Gather(value, _blocks(op, value, data, axis, block), axis=axis % data.need_rank())
    if op.version < 10 or is_per_tensor(value):
        return value  # version 10 knows no other
    rank = data.need_rank()
    behind = rank - 1 - axis % rank
    if not behind:
        return value
    array = op.rw.constant_value(value.name)
    spread_value = value if array is None else op.constant(array)
    return spread_value.reshape(-1, *[1] * behind)


def _blocks(op: Op, value: Value, data: Value, axis: int, block: int) -> Value:
    """Return the number of the block for each place of the data along the axis."""
    rank = data.need_rank()
    if value.need_rank() != rank or not -rank <= axis < rank or block < 0:
        op.refuse(
            f"has block_size={block} and axis={axis}, for data of {rank} axes and a scale or zero point of"
            f" {value.need_rank()}",
            code="invalid-node",
            hint="scale and zero point of blocks have as many axes as the data",
        )
    shape = data.shape
    size = shape[axis] if shape is not None else None
    if size is not None:
        return op.constant(np.arange(bounded(size)) // block)
    return op.Div(op.iota(op.size_of(data, axis % rank)), [block])
