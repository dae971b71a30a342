"""MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv: products of the differences from the zero points."""

from __future__ import annotations

import math

import numpy as np
import onnx

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.plugins import Exactness, LoweringRewriter, compatible, lowering

from .quantizing import round_to_even, saturate

_T = TensorProto

_EXACT = 2**24
"""float32 represents all whole numbers up to this one exactly."""

_LARGEST_DIFFERENCE = 255

compatible("QLinearMatMul", 21, reason="more types are allowed")


@formula("MatMulInteger", since=10, types=LostTypes.OWN)
def mat_mul_integer(op: Op, a: Value, b: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    """MatMulInteger becomes a MatMul of the differences from the zero points.

    Why equal: the type of the MatMul represents all sums, which are whole numbers. This type is int32 or a float. float32 is
    exact up to 2^24, and the weights show whether the sums stay below. Below opset 9 double represents all sums. ONNX Runtime
    computes the same bits.
    """
    dtype = _whole_type(op, b, b_zero)
    left = _difference(op, a, None if a_zero is None else _column(op, a_zero), dtype)
    return (left @ _difference(op, b, b_zero, dtype)).cast(_T.INT32)


@formula("ConvInteger", since=10, types=LostTypes.OWN)
def conv_integer(op: Op, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None) -> Value:
    """ConvInteger becomes a Conv of floats on the differences from the zero points, and a Cast to int32.

    What changes: the node becomes Cast, Sub, Conv and Cast. If the sums may exceed 2^24, the data is split into its multiples
    of 16 and the rest. Each part gets its own Conv.

    Why equal: all sums are whole numbers up to 2^24, which float32 represents exactly. ONNX Runtime computes the same bits.

    Limits: the shape of the weights must be known. onnx-migrate refuses nodes whose sums may exceed 2^24 even after the
    split.
    """
    bound = _largest_sum(op, w, w_zero)
    data = _difference(op, x, x_zero, _T.FLOAT)
    origin = None if w_zero is None else _per_channel(w_zero, w, behind=-1)
    weights = _difference(op, w, origin, _T.FLOAT)
    if bound * 16 > _EXACT:
        op.refuse(
            f"its sums may reach {bound * _LARGEST_DIFFERENCE}, which no Conv below opset 10 computes exactly",
            code="no-equal",
            hint="use the model before it was quantised",
        )
    return _convolved(op, data, weights, bound)


@lowering("QLinearMatMul", leaves=21, exactness=EQUIVALENT, types=LostTypes.OWN)
def q_linear_mat_mul_21_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Half float scales are cast to float.

    What changes: each scale that is not a float gets a Cast.

    Why equal: float32 represents every half float, and the product of the scales is rounded less. A node with float scales is
    unchanged.

    Limits: onnx-migrate refuses 8-bit floats.
    """
    for index in (0, 3, 7):
        dtype = rw.dtype(rw.input(index))
        if dtype not in (None, _T.INT8, _T.UINT8):
            rw.refuse(
                "QLinearMatMul does not support 8-bit floats below opset 21",
                code="no-equal",
                hint="quantise the model to int8",
            )
    changed = False
    for index in (1, 4, 6):
        if rw.need_dtype(rw.input(index)) != _T.FLOAT:
            node.input[index] = rw.before("Cast", [rw.input(index)], hint="scale", to=_T.FLOAT)
            changed = True
    if not changed:
        rw.exactness = Exactness.EXACT


@formula("QLinearMatMul", since=10, exactness=EQUIVALENT, types=LostTypes.OWN)
def q_linear_mat_mul(
    op: Op,
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    y_scale: Value,
    y_zero: Value,
) -> Value:
    """QLinearMatMul becomes an integer product of the differences from the zero points, scaled, rounded and saturated.

    Why equal: the new nodes follow the standard's text. Their results equalled those of ONNX Runtime's kernel in
    measurements. A result half-way between two steps may become either of them.

    Limits: the rank of scales and zero points with several elements must be known.
    """
    dtype = _whole_type(op, b, b_zero)
    left = _difference(op, a, _column(op, a_zero), dtype)
    product = (left @ _difference(op, b, b_zero, dtype)).cast(_T.FLOAT)
    scale = _column(op, a_scale) * b_scale
    scale = scale / _column(op, y_scale)
    return _requantized(op, product, scale, _column(op, y_zero), y_zero.need_dtype())


@formula("QLinearConv", since=10, exactness=EQUIVALENT, types=LostTypes.OWN)
def q_linear_conv(
    op: Op,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value | None,
) -> Value:
    """QLinearConv becomes a Conv of floats on the differences from the zero points, scaled, rounded and saturated.

    What changes: the node becomes Cast, Sub, Conv, Cast, and an Add of the bias. Then come a Mul by (x_scale · w_scale) /
    y_scale, rounding, an Add and saturation. If the sums may exceed 2^24, the data is split into its multiples of 16 and the
    rest. Each part gets its own Conv.

    Why equal: the new nodes follow the standard's text. Their results equalled those of ONNX Runtime's kernel in
    measurements. A result half-way between two steps may become either of them.

    Limits: the shape of the weights must be known.
    """
    bound = _largest_sum(op, w, w_zero)
    data = _difference(op, x, x_zero, _T.FLOAT)
    weights = _difference(op, w, _per_channel(w_zero, w, behind=-1), _T.FLOAT)
    total = _convolved(op, data, weights, bound)
    if bias is not None:
        total = total + _per_channel(bias, w)
    scale = x_scale * _per_channel(w_scale, w)
    scale = scale / y_scale
    return _requantized(op, total.cast(_T.FLOAT), scale, y_zero, y_zero.need_dtype())


def _whole_type(op: Op, weights: Value, zero_point: Value | None) -> int:
    """Return the type for MatMul on whole numbers: float32 if it represents all sums, as importers have no other MatMul."""
    if op.target < 9:
        return _T.DOUBLE
    array = op.rw.constant_value(weights.name)
    zero = np.array(0) if zero_point is None else op.rw.constant_value(zero_point.name)
    if array is None or zero is None or array.ndim != 2 or zero.size not in (1, array.shape[1]):
        return _T.INT32
    columns = np.abs(array.astype(np.int64) - zero.astype(np.int64).reshape(-1)).sum(0)
    return _T.FLOAT if int(columns.max(initial=0)) * _LARGEST_DIFFERENCE <= _EXACT else _T.INT32


def _difference(op: Op, value: Value, zero_point: Value | None, dtype: int) -> Value:
    """Return `value - zero_point` in a type that represents it."""
    wide = value.cast(dtype)
    zero = None if zero_point is None else op.rw.constant_value(zero_point.name)
    if zero_point is None or (zero is not None and not zero.any()):
        return wide
    return wide - zero_point.cast(dtype)


def _column(op: Op, value: Value) -> Value:
    """Return a scale or zero point of rows with an axis of length 1 behind. Other ranks than 1 are unchanged."""
    return value if value.need_rank() != 1 or value.shape == (1,) else op.Unsqueeze(value, [1])


def _per_channel(value: Value, weights: Value, behind: int = -2) -> Value:
    """Return `[M]`, one number per output channel, followed by as many axes of 1 as the rank of the weights + `behind`."""
    if value.need_rank() != 1 or value.shape == (1,):
        return value
    return value.reshape(-1, *[1] * (weights.need_rank() + behind))


def _largest_sum(op: Op, weights: Value, zero_point: Value | None) -> int:
    """Return the largest sum of the absolute weights of one output channel."""
    shape = weights.need_static()
    array = op.rw.constant_value(weights.name)
    zero = np.array(0) if zero_point is None else op.rw.constant_value(zero_point.name)
    if array is None or zero is None:
        return math.prod(shape[1:]) * _LARGEST_DIFFERENCE
    if not shape or zero.size not in (1, shape[0]):
        op.refuse(
            f"has {zero.size} zero points for weights of shape {list(shape)}, and needs one, or one for each output channel",
            code="invalid-node",
        )
    flat = array.reshape(shape[0], -1).astype(np.int64) - zero.astype(np.int64).reshape(-1, 1)
    return int(np.abs(flat).sum(1).max(initial=0))


def _convolved(op: Op, x: Value, w: Value, bound: int) -> Value:
    """Return the convolution of whole numbers as int32; `bound` is the largest sum of the absolute weights."""
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    attributes = {name: op.rw.get(name) for name in names}
    if bound * _LARGEST_DIFFERENCE <= _EXACT:
        return op.Conv(x, w, **attributes).cast(_T.INT32)
    sixteen = op.constant(np.float32(16))
    high = op.Floor(x / sixteen)
    low = x - high * sixteen
    sums = [op.Conv(part, w, **attributes).cast(_T.INT32) for part in (high, low)]
    return sums[0] * op.constant(np.int32(16)) + sums[1]


def _requantized(op: Op, total: Value, scale: Value, zero_point: Value, dtype: int) -> Value:
    """Return `saturate(round(total * scale) + zero_point)`."""
    value = round_to_even(op, total * scale)
    return saturate(op, value + zero_point.cast(_T.FLOAT), dtype)
