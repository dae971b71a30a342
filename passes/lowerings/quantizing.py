"""Quantisation written out in arithmetic, as runtimes compute it: in float32, with scales and zero points broadcast."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto, helper

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter
from onnx_migrate.spec.element_types import FIRST_OPSET, type_name

from .building import cast, integers, iota, size_of
from .selecting import select_without_where

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


def refuse_missing_type(rw: LoweringRewriter, dtype: int | None) -> None:
    """Refuse with `no-such-type` an element type that opset `rw.version` does not have; None is any type."""
    if dtype is not None and FIRST_OPSET.get(dtype, 1) > rw.version:
        rw.refuse(
            f"the element type {type_name(dtype)} does not exist below opset {FIRST_OPSET[dtype]}",
            code="no-such-type",
            hint="convert the model to another element type first",
        )


def is_widened(rw: LoweringRewriter, value: str) -> bool:
    """Return whether a quantised value holds floating point numbers: a constant of 8 bits or less that was widened."""
    return rw.dtype(value) in (_T.FLOAT16, _T.FLOAT)


def is_per_tensor(rw: LoweringRewriter, scale: str) -> bool:
    """Return whether a scale has one element; refuses with `needs-rank` if it may have any number."""
    shape = rw.shape(scale)
    return rw.need_rank(scale) == 0 or shape == (1,)


def dequantize(
    rw: LoweringRewriter, value: str, scale: str, zero_point: str, dtype: int, output: str
) -> None:
    """Write `(value - zero_point) * scale` after the node, computed in float32 and given out in element type `dtype`.

    The difference is one of int32, which wraps around, as in ONNX Runtime's kernels.
    """
    _refuse_other_size(rw, scale, zero_point)
    zero = rw.constant_value(zero_point) if zero_point else None
    if not zero_point or (zero is not None and not zero.any()) or is_widened(rw, value):
        number = cast(rw, value, _T.FLOAT, hint="number")
    else:
        wide = cast(rw, value, _T.INT32, hint="wide")
        origin = spread(rw, cast(rw, zero_point, _T.INT32, hint="zero_point"), value)
        number = cast(rw, rw.before("Sub", [wide, origin], hint="difference"), _T.FLOAT, hint="number")
    factor = spread(rw, cast(rw, scale, _T.FLOAT, hint="scale"), value)
    if (one := rw.constant_value(scale)) is not None and one.shape == () and one == 1 and dtype == _T.FLOAT:
        rw.after("Identity", [number], [output])
        return
    if dtype == _T.FLOAT:
        rw.after("Mul", [number, factor], [output])
        return
    rw.after("Cast", [rw.before("Mul", [number, factor], hint="product")], [output], to=dtype)


def quantize(rw: LoweringRewriter, value: str, scale: str, zero_point: str, dtype: int, output: str) -> None:
    """Write `saturate(round(value / scale) + zero_point)` after the node, computed in float32; `dtype` is an integer type."""
    _refuse_other_size(rw, scale, zero_point)
    divisor = spread(rw, cast(rw, scale, _T.FLOAT, hint="scale"), value)
    ratio = rw.before("Div", [cast(rw, value, _T.FLOAT, hint="number"), divisor], hint="ratio")
    rounded = round_to_even(rw, ratio)
    if zero_point:
        rounded = rw.before(
            "Add",
            [rounded, spread(rw, cast(rw, zero_point, _T.FLOAT, hint="zero_point"), value)],
            hint="moved",
        )
    saturate(rw, rounded, dtype, output)


def _refuse_other_size(rw: LoweringRewriter, scale: str, zero_point: str) -> None:
    """Refuse with `invalid-node` a zero point of more or fewer elements than the scale."""
    shapes = [rw.shape(name) if name else () for name in (scale, zero_point or scale)]
    known = [tuple(shape) for shape in shapes if shape is not None and None not in shape]
    if len(known) == 2 and math.prod(known[0]) != math.prod(known[1]):  # type: ignore[arg-type]
        rw.refuse(
            f"has a scale of shape {list(known[0])} and a zero point of shape {list(known[1])}",
            code="invalid-node",
            hint="a zero point has as many elements as the scale",
        )


def saturate(rw: LoweringRewriter, value: str, dtype: int, output: str) -> None:
    """Write a Cast of whole float32 numbers to an integer type after the node; what does not fit becomes its nearest end.

    NaN becomes the lower end, as in ONNX Runtime's kernels; the standard leaves it open.
    """
    info = np.iinfo(helper.tensor_dtype_to_np_dtype(dtype))
    low, high = (rw.constant(np.array(end, np.float32), "end") for end in (info.min, info.max))
    above = rw.before("Less", [low, value], hint="above")
    if rw.target >= 9:
        value = rw.before("Where", [above, value, low], hint="raised")
        rw.after("Cast", [rw.before("Min", [value, high], hint="saturated")], [output], to=dtype)
        return
    # Below there is no Where. Integers are selected by products, which need no fixed shape, and hide what NaN is cast to.
    if rw.version >= 11:
        value = rw.before("Clip", [value, low, high], hint="clipped")
    else:
        value = rw.before("Clip", [value], hint="clipped", min=float(info.min), max=float(info.max))
    whole = rw.before("Cast", [value], hint="whole", to=int(_T.INT32))
    lowest = rw.constant(np.array(info.min, np.int32), "end")
    rw.after("Cast", [select_without_where(rw, above, whole, lowest)], [output], to=dtype)


def round_to_even(rw: LoweringRewriter, value: str) -> str:
    """Return float32 numbers rounded to the nearest whole number, halves to the even one."""
    if rw.version >= 11:
        return rw.before("Round", [value], hint="rounded")
    half, two, one = (rw.constant(np.array(number, np.float32), "number") for number in (0.5, 2, 1))
    floor = rw.before("Floor", [value], hint="floor")
    rest = rw.before("Sub", [value, floor], hint="rest")
    pair = rw.before("Mul", [rw.before("Floor", [rw.before("Mul", [floor, half])]), two], hint="even")
    odd = rw.before("Less", [pair, floor], hint="odd")
    above, below = (
        rw.before("Less", [half, rest], hint="above"),
        rw.before("Less", [rest, half], hint="below"),
    )
    tie = rw.before("And", [odd, rw.before("Not", [below])], hint="odd_tie")
    up = rw.before("Cast", [rw.before("Or", [above, tie], hint="up")], hint="up", to=_T.FLOAT)
    return rw.before("Add", [floor, rw.before("Mul", [up, one])], hint="rounded")


def spread(rw: LoweringRewriter, value: str, data: str) -> str:
    """Return a scale or zero point in a shape that is broadcast to the data, by the node's `axis` and `block_size`."""
    axis, block = rw.get("axis", 1), rw.get("block_size", 0)
    if block:
        rank = rw.need_rank(data)
        if rw.need_rank(value) != rank or not -rank <= axis < rank or block < 0:
            rw.refuse(
                f"has block_size={block} and axis={axis}, for data of {rank} axes and a scale or zero point of"
                f" {rw.need_rank(value)}",
                code="invalid-node",
                hint="scale and zero point of blocks have as many axes as the data",
            )
        axis %= rank
        shape = rw.shape(data)
        size = shape[axis] if shape is not None else None
        if size is not None:
            places = rw.constant(np.arange(size) // block, "blocks")
        else:
            places = rw.before("Div", [iota(rw, size_of(rw, data, axis)), integers(rw, block)], hint="blocks")
        return rw.before("Gather", [value, places], hint="by_block", axis=axis)
    if rw.version < 10 or is_per_tensor(rw, value):
        return value  # version 10 knows no other
    rank = rw.need_rank(data)
    behind = rank - 1 - axis % rank
    if not behind:
        return value
    array = rw.constant_value(value)
    if array is not None:
        return rw.constant(array.reshape(-1, *[1] * behind), "by_axis")
    return rw.before("Reshape", [value, integers(rw, -1, *[1] * behind)], hint="by_axis")
