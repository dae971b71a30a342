"""Comparisons: of types, and with operators, that an older opset does not have."""

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
    """GreaterOrEqual and LessOrEqual begin with opset 12: Greater or Less, or Equal.

    What changes: the node becomes an Or of the two comparisons. Of floats below opset 11, where Equal does not take them,
    it becomes: not less (or greater), and neither value is NaN.

    Why equal: the text. Not(Less) alone would be wrong for NaN. Bit for bit in ONNX Runtime.
    """
    greater = op.operator == "GreaterOrEqual"
    if op.target < 11 and a.need_dtype() in FLOATS:
        return reduce(and_, [~(a < b if greater else a > b), *_ordered(op, a, b)])
    return (a > b if greater else a < b) | (a == b)


@formula("Equal", since=11, types=LostTypes.OWN)
def equal_11_down(op: Op, a: Value, b: Value) -> Value:
    """Equal takes bool, int32 and int64 alone.

    What changes: other integers are cast to int32 or int64. Floats are equal if neither is less than the other, and neither is
    NaN.

    Why equal: the Casts map different integers to different ones (uint64 to int64 keeps the bits). Bit for bit in ONNX Runtime
    over all pairs of special values.
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
    """Return for each value that is not known to be free of NaN where it is none."""
    found = []
    for name, value in {value.name: value for value in values}.items():
        static = value.static
        constant = op.rw.constant_value(name) if static is not None and math.prod(static) <= 4096 else None
        if constant is None or bool(np.isnan(constant).any()):
            found.append(_not_nan(op, value))
    return found


def _not_nan(op: Op, x: Value) -> Value:
    """Return where a value is no NaN."""
    return ~op.IsNaN(x) if op.version >= 9 else (x < np.inf) | (x > -np.inf)


@formula("Greater", "Less", since=9, types=LostTypes.OWN)
def ordered_9_down(op: Op, a: Value, b: Value) -> Value:
    """Greater and Less take floats alone.

    What changes: integers of 8 and 16 bits are cast to float32, those of 32 bits to double. Those of 64 bits are compared by
    their upper halves, and where these are equal by their lower ones, all cast to double.

    Why equal: the Casts are exact. x = upper * 2^32 + lower, with upper = x / 2^32 rounded towards 0, is ordered as the pair.
    Bit for bit in ONNX Runtime.
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
    """Return an integer of 64 bits as two doubles, the upper one of which is to be compared first."""
    upper = value / _BASE
    lower = value - upper * _BASE
    return upper.cast(_T.DOUBLE), lower.cast(_T.DOUBLE)


@formula("IsInf", since=10)
def is_inf(op: Op, x: Value, *, detect_negative: int, detect_positive: int) -> Value:
    """IsInf begins with opset 10: a value beyond the largest finite one.

    Why equal: only infinities are beyond; NaN is not. Bit for bit in ONNX Runtime.
    """
    largest = float(np.finfo(x.numpy_type).max)
    if detect_positive:
        return (abs(x) if detect_negative else x) > largest
    return x < -largest if detect_negative else x > x  # nothing is greater than itself


@formula("IsNaN", since=9)
def is_nan(op: Op, x: Value) -> Value:
    """IsNaN begins with opset 9: neither less than infinity nor greater than minus infinity.

    Why equal: of all values only NaN is neither. Bit for bit in ONNX Runtime.
    """
    return ~_not_nan(op, x)


@formula("Sign", since=9)
def sign(op: Op, x: Value) -> Value:
    """Sign begins with opset 9: whether a value is greater than 0 minus whether it is less.

    What changes: Greater and Less, cast to the type, and Sub. Integers are compared as floats. To float32 and double,
    0 * Clip(x, -1, 1) is added, so that NaN stays NaN; of float16, ONNX Runtime's Sign gives 0 for NaN. A double is clipped as
    float32, since ONNX Runtime has no kernel for it.

    Why equal: the text; a Cast to float keeps the sign. Bit for bit in ONNX Runtime.
    """
    dtype = x.need_dtype()
    compared = x if dtype in FLOATS else x.cast(_T.FLOAT if dtype in _SMALL else _T.DOUBLE)
    wide = dtype if dtype not in _SMALL else _T.INT32
    positive, negative = (compared > 0).cast(wide), (compared < 0).cast(wide)
    if dtype not in (_T.FLOAT, _T.DOUBLE):
        return (positive - negative).cast(dtype)
    bounded = op.Clip(x.cast(_T.FLOAT), -1, 1).cast(dtype)
    return (positive - negative) + bounded * 0
