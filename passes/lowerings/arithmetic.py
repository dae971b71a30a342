"""Pow of two types, Mod of floats and of integers, Round, and functions that opset 8 does not have."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, impossible, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import FLOATS, INTEGERS, cast, replace, scalar
from .selecting import select

_T = TensorProto
_SMALL = (_T.INT8, _T.INT16, _T.UINT8, _T.UINT16)
_UNSIGNED = (_T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64)


@lowering("Pow", leaves=12, types=LostTypes.OWN)
def pow_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Pow takes two floats of one type.

    What changes: a constant exponent that the type of a float base holds is written in that type. Otherwise base and exponent are
    cast to double, and the power to the type of the base.

    Why equal: ONNX Runtime computes powers of other types in double. Bit for bit over all pairs of types and special values.

    Limits: both element types must be known. A runtime that computes powers of int64 as integers differs beyond 2^53.
    """
    base, exponent = node.input
    kind, other = rw.need_dtype(base), rw.need_dtype(exponent)
    if kind in FLOATS and kind == other:
        return
    known = rw.known(exponent)
    if kind in FLOATS and known is not None:
        narrow = known.astype(rw.numpy_type(base))
        if np.array_equal(narrow.astype(np.float64), known.astype(np.float64)):
            rw.set_input(1, rw.constant(narrow, "exponent"))
            return
    rw.cast_around([], [0], _T.DOUBLE, kind)
    rw.set_input(0, cast(rw, base, _T.DOUBLE))
    rw.set_input(1, cast(rw, exponent, _T.DOUBLE))


@lowering("Mod", leaves=28)
def mod_28_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Mod with fmod=0 takes integers alone.

    What changes: of floats, r = Mod(A, B) with fmod=1 is moved by B where it has another sign than B; where r is 0, it gets
    the sign of B.

    Why equal: the special cases of the text. Bit for bit equal to numpy.mod over all pairs of special values.

    Limits: the element type must be known unless `fmod` is 1.
    """
    a, b = node.input
    if rw.get("fmod", 0) == 1 or rw.need_dtype(a) not in FLOATS:
        return
    zero = scalar(rw, 0, b)
    rest = rw.before("Mod", [a, b], hint="rest", fmod=1)
    below, above = rw.before("Less", [rest, zero]), rw.before("Greater", [rest, zero])
    divisor_below = rw.before("Less", [b, zero])
    nonzero = rw.before("Or", [below, above])
    differs = rw.before("And", [nonzero, rw.before("Xor", [below, divisor_below])])
    signed_zero = rw.before("Where", [rw.before("Not", [divisor_below]), zero, scalar(rw, -0.0, b)])
    # NaN is not equal to 0, and stays.
    settled = select(rw, rw.before("Equal", [rest, zero]), signed_zero, rest)
    replace(rw, select(rw, differs, rw.before("Add", [rest, b]), settled))


@lowering("Mod", leaves=10)
def mod_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Mod begins with opset 10: of integers, A - (A / B) * B, moved by B where its sign differs.

    What changes: Div, Mul and Sub; unless `fmod` is 1 or the type unsigned, B is added where the rest is not 0 and has
    another sign than B. Integers of 8 and 16 bits are cast to int32.

    Why equal: the text; integers are divided towards 0. Bit for bit in ONNX Runtime.

    Limits: floats are refused: A - (A / B) * B is rounded, and the rest of a float division is exact. The element type
    must be known.
    """
    dtype = rw.need_dtype(rw.input(0))
    if dtype not in INTEGERS:
        rw.refuse("Mod of floats has no exact form below opset 10", code="no-equal")
    wide = _T.INT32 if dtype in _SMALL else dtype
    a, b = (cast(rw, value, wide) for value in node.input)
    rest = rw.before("Sub", [a, rw.before("Mul", [rw.before("Div", [a, b]), b])], hint="rest")
    if rw.get("fmod", 0) == 0 and dtype not in _UNSIGNED:
        zero = scalar(rw, 0, b)
        below, above = rw.before("Less", [rest, zero]), rw.before("Greater", [rest, zero])
        nonzero = rw.before("Or", [below, above])
        differs = rw.before("And", [nonzero, rw.before("Xor", [below, rw.before("Less", [b, zero])])])
        rest = rw.before("Add", [rest, rw.before("Mul", [cast(rw, differs, wide), b])])
    replace(rw, cast(rw, rest, dtype))


@lowering("Round", leaves=11)
def round_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Round begins with opset 11: halves are rounded to the even neighbour.

    What changes: the magnitude is rounded down, 1 is added where what is left is more than a half, or a half of an odd number,
    and the sign is put back: that of -0 by its reciprocal. Half floats are computed in float32 between Casts.

    Why equal: each operation is exact. Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    dtype = rw.need_dtype(rw.input(0))
    kind = _T.DOUBLE if dtype == _T.DOUBLE else _T.FLOAT
    x = cast(rw, rw.input(0), kind)

    def constant(number: float) -> str:
        return scalar(rw, number, x)

    size = rw.before("Abs", [x])
    whole = rw.before("Floor", [size])
    left = rw.before("Sub", [size, whole], hint="left")
    half = rw.before("Floor", [rw.before("Mul", [whole, constant(0.5)])])
    odd = rw.before("Sub", [whole, rw.before("Add", [half, half])], hint="odd")
    # What is left of an odd number is a multiple of twice this step, so "at least a half" is "more than a half less the step".
    step = 2.0**-53 if kind == _T.DOUBLE else 2.0**-24
    bound = rw.before("Sub", [constant(0.5), rw.before("Mul", [odd, constant(step)])], hint="bound")
    up = cast(rw, rw.before("Greater", [left, bound]), kind)
    rounded = rw.before("Add", [whole, up], hint="magnitude")
    inverse = rw.before("Reciprocal", [x])
    negative = rw.before("Or", [rw.before("Less", [value, constant(0)]) for value in (x, inverse)])
    twice = rw.before("Mul", [cast(rw, negative, kind), constant(2)])
    sign = rw.before("Sub", [constant(1), twice], hint="sign")
    replace(rw, cast(rw, rw.before("Mul", [rounded, sign]), dtype))


for _operator in ("Acosh", "Asinh", "Atanh", "Cosh", "Erf", "Sinh"):
    impossible(
        _operator,
        9,
        why=f"{_operator} begins with opset 9, and formulas of older operators give other digits",
    )
