"""Comparisons of types that an older opset does not support, and comparison operators that it lacks."""

from __future__ import annotations

import math
from functools import reduce
from operator import and_

import numpy as np

from onnx_migrate.engine.steps.formula import FLOATS, INTEGERS, LostTypes, Op, TensorProto, Value, formula

_T = TensorProto
_WIDE = (_T.INT64, _T.UINT64)
_SMALL = (_T.INT8, _T.INT16, _T.UINT8, _T.UINT16)
_BASE = 2**32


@formula("GreaterOrEqual", "LessOrEqual", since=12)
def or_equal_12_down(op: Op, a: Value, b: Value) -> Value:
    """GreaterOrEqual and LessOrEqual begin with opset 12, so Greater or Less is combined with Equal.

    What changes: the node becomes an Or of the two comparisons. Below opset 11 Equal does not support floats. There the
    result for floats is "not less (or greater), and neither value is NaN".

    Why equal: the text defines the operators so. Not(Less) alone would be wrong for NaN. ONNX Runtime computes the same bits.
    """
    greater = op.operator == "GreaterOrEqual"
    if op.target < 11 and a.need_dtype() in FLOATS:
        return reduce(and_, [~(a < b if greater else a > b), *_ordered(op, a, b)])
    return (a > b if greater else a < b) | (a == b)


@formula("Equal", since=11, types=LostTypes.OWN)
def equal_11_down(op: Op, a: Value, b: Value) -> Value:
    """Below opset 11 Equal supports only bool, int32 and int64.

    What changes: other integers are cast to int32 or int64. Floats are equal if neither is less than the other and neither is
    NaN.

    Why equal: the Casts map different integers to different ones (uint64 to int64 keeps the bits). ONNX Runtime computes the
    same bits over all pairs of special values.
    """
    dtype = a.need_dtype()
    if dtype in (_T.BOOL, _T.INT32, _T.INT64):
        return op.itself(a, b)
    if dtype in INTEGERS:
        wide = _T.INT32 if dtype in _SMALL else _T.INT64
        return op.itself(a.cast(wide), b.cast(wide))
    if dtype not in FLOATS:
        op.refuse("values of this type cannot be compared below opset 11", code="no-equal")
    different = (a < b) | (a > b)
    ordered = _ordered(op, a, b)
    return reduce(and_, [~different, *ordered])


def _ordered(op: Op, *values: Value) -> list[Value]:
    """For each value that may hold NaN, return a mask of the elements that are not NaN."""
    conditions = []
    for name, value in {value.name: value for value in values}.items():
        static = value.static
        constant = op.rw.constant_value(name) if static is not None and math.prod(static) <= 4096 else None
        if constant is None or bool(np.isnan(constant).any()):
            conditions.append(_not_nan(op, value))
    return conditions


def _not_nan(op: Op, x: Value) -> Value:
    """Return a mask of the elements that are not NaN."""
    return ~op.IsNaN(x) if op.version >= 9 else (x < np.inf) | (x > -np.inf)


@formula("Greater", "Less", since=9, types=LostTypes.OWN)
def ordered_9_down(op: Op, a: Value, b: Value) -> Value:
    """Below opset 9 Greater and Less support only floats.

    What changes: integers of 8 and 16 bits are cast to float32, and those of 32 bits to double. Integers of 64 bits are split
    into an upper and a lower half, both cast to double. The upper halves are compared first, and the lower halves if those
    are equal.

    Why equal: the Casts are exact. x = upper * 2^32 + lower, with upper = x / 2^32 rounded towards 0, has the same order as
    the pair. ONNX Runtime computes the same bits.
    """
    dtype = a.need_dtype()
    if dtype in FLOATS:
        return op.itself(a, b)
    if dtype not in _WIDE:
        wide = _T.FLOAT if dtype in _SMALL else _T.DOUBLE
        return op.itself(a.cast(wide), b.cast(wide))
    (upper_a, lower_a), (upper_b, lower_b) = _halves(a), _halves(b)
    greater = op.operator == "Greater"
    sides = (upper_a > upper_b, upper_a < upper_b) if greater else (upper_a < upper_b, upper_a > upper_b)
    undecided = ~(sides[0] | sides[1])
    return sides[0] | (undecided & (lower_a > lower_b if greater else lower_a < lower_b))


def _halves(value: Value) -> tuple[Value, Value]:
    """Return a 64-bit integer as two doubles. Compare the upper one first."""
    upper = value / _BASE
    lower = value - upper * _BASE
    return upper.cast(_T.DOUBLE), lower.cast(_T.DOUBLE)


@formula("IsInf", since=10)
def is_inf(op: Op, x: Value, *, detect_negative: int, detect_positive: int) -> Value:
    """IsInf begins with opset 10, so values are compared with the largest finite number.

    Why equal: only infinities exceed it, and NaN does not. ONNX Runtime computes the same bits.
    """
    largest = float(np.finfo(x.numpy_type).max)
    if detect_positive:
        return (abs(x) if detect_negative else x) > largest
    return x < -largest if detect_negative else x > x  # nothing is greater than itself


@formula("IsNaN", since=9)
def is_nan(op: Op, x: Value) -> Value:
    """IsNaN begins with opset 9, so values are compared with both infinities.

    Why equal: only NaN is neither less than infinity nor greater than minus infinity. ONNX Runtime computes the same bits.
    """
    return ~_not_nan(op, x)


@formula("Sign", since=9)
def sign(op: Op, x: Value) -> Value:
    """Sign begins with opset 9, so it becomes Greater(X, 0) minus Less(X, 0).

    What changes: the node becomes Greater and Less, cast to the type, and Sub. Integers are compared as floats. For float32
    and double, 0 * Clip(x, -1, 1) is added, so that NaN stays NaN. For float16, ONNX Runtime's Sign returns 0 for NaN. A
    double is clipped as float32, since ONNX Runtime has no Clip kernel for it.

    Why equal: the text defines Sign so, and a Cast to float keeps the sign. ONNX Runtime computes the same bits.
    """
    dtype = x.need_dtype()
    compared = x if dtype in FLOATS else x.cast(_T.FLOAT if dtype in _SMALL else _T.DOUBLE)
    wide = dtype if dtype not in _SMALL else _T.INT32
    positive, negative = (compared > 0).cast(wide), (compared < 0).cast(wide)
    if dtype not in (_T.FLOAT, _T.DOUBLE):
        return (positive - negative).cast(dtype)
    bounded = op.Clip(x.cast(_T.FLOAT), -1, 1).cast(dtype)
    return (positive - negative) + bounded * 0
