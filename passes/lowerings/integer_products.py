"""MatMulInteger, ConvInteger, QLinearMatMul and QLinearConv: products of the differences from the zero points."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, integers, unsqueeze
from .quantizing import round_to_even, saturate

_T = TensorProto

_EXACT = 2**24
"""Whole numbers up to this are exact in float32."""

_LARGEST_DIFFERENCE = 255


@lowering("MatMulInteger", leaves=10, types=LostTypes.OWN)
def mat_mul_integer_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The differences from the zero points are multiplied as int32, or as doubles below opset 9.

    What changes: the node becomes Cast, Sub and MatMul.

    Why equal: all sums are whole numbers that int32, or a double, holds. Bit for bit in ONNX Runtime.

    Limits: the rank of a zero point with several elements must be known.
    """
    dtype = int(_T.INT32 if rw.target >= 9 else _T.DOUBLE)
    a = _difference(rw, rw.input(0), _column(rw, rw.input(2)), dtype)
    b = _difference(rw, rw.input(1), rw.input(3), dtype)
    if dtype == _T.INT32:
        rw.after("MatMul", [a, b], [rw.output(0)])
    else:
        rw.after("Cast", [rw.before("MatMul", [a, b])], [rw.output(0)], to=int(_T.INT32))
    rw.remove()


@lowering("ConvInteger", leaves=10, types=LostTypes.OWN)
def conv_integer_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The differences from the zero points go through a Conv of floats, whose result is cast to int32.

    What changes: the node becomes Cast, Sub, Conv and Cast. If the sums may be larger than 2^24, the data is split into its
    multiples of 16 and the rest, with a Conv each.

    Why equal: all sums are whole numbers up to 2^24, which floats hold. Bit for bit in ONNX Runtime.

    Limits: the shape of the weights must be known. Sums that may be larger even so are refused.
    """
    bound = _largest_sum(rw, 1, 3)
    x = _difference(rw, rw.input(0), rw.input(2), _T.FLOAT)
    w = _difference(rw, rw.input(1), _per_channel(rw, rw.input(3), rw.input(1), behind=-1), _T.FLOAT)
    if bound * 16 > _EXACT:
        rw.refuse(
            f"its sums may reach {bound * _LARGEST_DIFFERENCE}, which no Conv below opset 10 computes exactly",
            code="no-equal",
            hint="use the model before it was quantised",
        )
    total = _convolved(rw, x, w, bound)
    rw.after("Identity", [total], [rw.output(0)])
    rw.remove()


@lowering("QLinearMatMul", leaves=21, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def q_linear_mat_mul_21_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Half float scales are cast to float.

    What changes: a Cast of each scale that is not a float.

    Why equal: every half float is a float; the product of the scales is rounded less. A node of float scales is unchanged.

    Limits: 8 bit floats are refused.
    """
    for index in (0, 3, 7):
        dtype = rw.dtype(rw.input(index))
        if dtype not in (None, _T.INT8, _T.UINT8):
            rw.refuse(
                "QLinearMatMul takes no 8 bit floats below opset 21",
                code="no-equal",
                hint="quantise the model to int8",
            )
    changed = False
    for index in (1, 4, 6):
        if rw.need_dtype(rw.input(index)) != _T.FLOAT:
            node.input[index] = cast(rw, rw.input(index), _T.FLOAT, hint="scale")
            changed = True
    if not changed:
        rw.exactness = Exactness.EXACT


@lowering("QLinearMatMul", leaves=10, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def q_linear_mat_mul_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The differences from the zero points are multiplied as integers, scaled, rounded and saturated.

    What changes: the node becomes Cast, Sub, MatMul, Cast, Mul by (a_scale · b_scale) / y_scale, rounding, Add and saturation.

    Why equal: the standard's text. Measured equal to ONNX Runtime's kernel; a result half-way between two steps may fall on
    the other one.

    Limits: the rank of scales and zero points with several elements must be known.
    """
    dtype = int(_T.INT32 if rw.target >= 9 else _T.DOUBLE)
    a = _difference(rw, rw.input(0), _column(rw, rw.input(2)), dtype)
    b = _difference(rw, rw.input(3), rw.input(5), dtype)
    product = cast(rw, rw.before("MatMul", [a, b], hint="product"), _T.FLOAT, hint="product")
    scale = rw.before("Mul", [_column(rw, rw.input(1)), rw.input(4)], hint="scale")
    scale = rw.before("Div", [scale, _column(rw, rw.input(6))], hint="scale")
    _requantize(rw, product, scale, _column(rw, rw.input(7)), rw.need_dtype(rw.input(7)))


@lowering("QLinearConv", leaves=10, exactness=Exactness.EQUIVALENT, types=LostTypes.OWN)
def q_linear_conv_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The differences from the zero points go through a Conv of floats; its result is scaled, rounded and saturated.

    What changes: the node becomes Cast, Sub, Conv, Cast, Add of the bias, Mul by (x_scale · w_scale) / y_scale, rounding, Add and
    saturation. If sums may be larger than 2^24, the data is split into its multiples of 16 and the rest, with a Conv each.

    Why equal: the standard's text. Measured equal to ONNX Runtime's kernel; a result half-way between two steps may fall on
    the other one.

    Limits: the shape of the weights must be known.
    """
    bound = _largest_sum(rw, 3, 5)
    x = _difference(rw, rw.input(0), rw.input(2), _T.FLOAT)
    w = _difference(rw, rw.input(3), _per_channel(rw, rw.input(5), rw.input(3), behind=-1), _T.FLOAT)
    total = _convolved(rw, x, w, bound)
    if rw.input(8):
        total = rw.before("Add", [total, _per_channel(rw, rw.input(8), rw.input(3))], hint="biased")
    scale = rw.before("Mul", [rw.input(1), _per_channel(rw, rw.input(4), rw.input(3))], hint="scale")
    scale = rw.before("Div", [scale, rw.input(6)], hint="scale")
    _requantize(rw, cast(rw, total, _T.FLOAT, hint="total"), scale, rw.input(7), rw.need_dtype(rw.input(7)))


def _difference(rw: LoweringRewriter, value: str, zero_point: str, dtype: int) -> str:
    """Return `value - zero_point` in a type that holds it."""
    wide = cast(rw, value, dtype, hint="wide")
    zero = rw.constant_value(zero_point) if zero_point else None
    if not zero_point or (zero is not None and not zero.any()):
        return wide
    return rw.before("Sub", [wide, cast(rw, zero_point, dtype, hint="zero_point")], hint="difference")


def _column(rw: LoweringRewriter, value: str) -> str:
    """Return a scale or zero point of rows with an axis of 1 behind; a scalar, or one of more axes, as it is."""
    if not value or rw.need_rank(value) != 1 or rw.shape(value) == (1,):
        return value
    return unsqueeze(rw, value, [1])


def _per_channel(rw: LoweringRewriter, value: str, weights: str, behind: int = -2) -> str:
    """Return one number per output channel, `[M]`, with as many axes of 1 behind as the rank of the weights + `behind`."""
    if not value or rw.need_rank(value) != 1 or rw.shape(value) == (1,):
        return value
    ones = [1] * (rw.need_rank(weights) + behind)
    return rw.before("Reshape", [value, integers(rw, -1, *ones)], hint="by_channel")


def _largest_sum(rw: LoweringRewriter, weights: int, zero_point: int) -> int:
    """Return the largest sum of the absolute weights of one output channel."""
    shape = rw.need_static(rw.input(weights))
    array = rw.constant_value(rw.input(weights))
    zero = np.array(0) if not rw.input(zero_point) else rw.constant_value(rw.input(zero_point))
    if array is None or zero is None:
        return math.prod(shape[1:]) * _LARGEST_DIFFERENCE
    if not shape or zero.size not in (1, shape[0]):
        rw.refuse(
            f"has {zero.size} zero points for weights of shape {list(shape)}, and needs one, or one for each output channel",
            code="invalid-node",
        )
    flat = array.reshape(shape[0], -1).astype(np.int64) - zero.astype(np.int64).reshape(-1, 1)
    return int(np.abs(flat).sum(1).max(initial=0))


def _convolved(rw: LoweringRewriter, x: str, w: str, bound: int) -> str:
    """Return the convolution of whole numbers as int32; `bound` is the largest sum of the absolute weights."""
    if bound * _LARGEST_DIFFERENCE <= _EXACT:
        return cast(rw, _conv(rw, x, w), _T.INT32, hint="total")
    sixteen = rw.constant(np.array(16, np.float32), "sixteen")
    high = rw.before("Floor", [rw.before("Div", [x, sixteen], hint="high")], hint="high")
    low = rw.before("Sub", [x, rw.before("Mul", [high, sixteen], hint="multiple")], hint="low")
    sums = [cast(rw, _conv(rw, part, w), _T.INT32, hint="total") for part in (high, low)]
    scaled = rw.before("Mul", [sums[0], rw.constant(np.array(16, np.int32), "sixteen")], hint="total")
    return rw.before("Add", [scaled, sums[1]], hint="total")


def _conv(rw: LoweringRewriter, x: str, w: str) -> str:
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    return rw.before("Conv", [x, w], hint="convolved", **{name: rw.get(name) for name in names})


def _requantize(rw: LoweringRewriter, total: str, scale: str, zero_point: str, dtype: int) -> None:
    """Write `saturate(round(total * scale) + zero_point)`, and drop the node."""
    value = round_to_even(rw, rw.before("Mul", [total, scale], hint="scaled"))
    zero = cast(rw, zero_point, _T.FLOAT, hint="zero_point")
    saturate(rw, rw.before("Add", [value, zero], hint="moved"), dtype, rw.output(0))
    rw.remove()
