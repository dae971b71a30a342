"""Arithmetic, logic and elementary functions: older types, and formulas for a target that lacks an operator."""

from __future__ import annotations

import math
from functools import reduce
from operator import add

import numpy as np

from onnx_migrate.engine.steps.formula import (
    EQUIVALENT,
    FLOATS,
    INTEGERS,
    LostTypes,
    Op,
    TensorProto,
    Value,
    formula,
)
from onnx_migrate.plugins import impossible

_T = TensorProto
_SMALL = (_T.INT8, _T.INT16, _T.UINT8, _T.UINT16)
_UNSIGNED = (_T.UINT8, _T.UINT16, _T.UINT32, _T.UINT64)

_LARGEST = 4096
"""Elements of a divisor up to which its reciprocal is computed now."""

for _operator in ("Acosh", "Asinh", "Atanh", "Cosh", "Erf", "Sinh"):
    impossible(
        _operator,
        9,
        why=f"{_operator} begins with opset 9, and formulas of older operators give other digits",
    )


@formula("Pow", since=12, types=LostTypes.OWN)
def pow_12_down(op: Op, base: Value, exponent: Value) -> Value:
    """Pow takes two floats of one type.

    What changes: a constant exponent that the type of a float base holds is written in that type. Otherwise base and exponent are
    cast to double, and the power to the type of the base.

    Why equal: ONNX Runtime computes powers of other types in double. Bit for bit over all pairs of types and special values.

    Limits: a runtime that computes powers of int64 as integers differs beyond 2^53.
    """
    kind, other = base.need_dtype(), exponent.need_dtype()
    if kind in FLOATS and kind == other:
        return op.itself(base, exponent)
    known = exponent.constant
    if kind in FLOATS and known is not None:
        narrow = known.astype(base.numpy_type)
        if np.array_equal(narrow.astype(np.float64), known.astype(np.float64)):
            return op.itself(base, narrow)
    return op.Cast(op.itself(base.cast(_T.DOUBLE), exponent.cast(_T.DOUBLE)), to=kind)


@formula("Mod", since=28)
def mod_28_down(op: Op, a: Value, b: Value, *, fmod: int) -> Value:
    """Mod with fmod=0 takes integers alone.

    What changes: of floats, r = Mod(A, B) with fmod=1 is moved by B where it has another sign than B; where r is 0, it gets
    the sign of B.

    Why equal: the special cases of the text. Bit for bit equal to numpy.mod over all pairs of special values.
    """
    if fmod == 1 or not a.is_float:
        return op.itself(a, b)
    rest = op.Mod(a, b, fmod=1)
    below, above = rest < 0, rest > 0
    divisor_below = b < 0
    differs = (below | above) & (below ^ divisor_below)
    signed_zero = op.Where(~divisor_below, op.constant(0, b), op.constant(-0.0, b))
    # NaN is not equal to 0, and stays.
    settled = op.select(rest == 0, signed_zero, rest)
    return op.select(differs, rest + b, settled)


@formula("Mod", since=10)
def mod(op: Op, a: Value, b: Value, *, fmod: int) -> Value:
    """Mod begins with opset 10: of integers, A - (A / B) * B, moved by B where its sign differs.

    What changes: Div, Mul and Sub; unless `fmod` is 1 or the type unsigned, B is added where the rest is not 0 and has
    another sign than B. Integers of 8 and 16 bits are cast to int32.

    Why equal: the text; integers are divided towards 0. Bit for bit in ONNX Runtime.

    Limits: floats are refused: A - (A / B) * B is rounded, and the rest of a float division is exact.
    """
    dtype = a.need_dtype()
    if dtype not in INTEGERS:
        op.refuse("Mod of floats has no exact form below opset 10", code="no-equal")
    wide = _T.INT32 if dtype in _SMALL else dtype
    a, b = a.cast(wide), b.cast(wide)
    rest = a - a / b * b
    if fmod == 0 and dtype not in _UNSIGNED:
        below, above = rest < 0, rest > 0
        differs = (below | above) & (below ^ (b < 0))
        rest = rest + differs.cast(wide) * b
    return rest.cast(dtype)


@formula("Round", since=11)
def round_11_down(op: Op, x: Value) -> Value:
    """Round begins with opset 11: halves are rounded to the even neighbour.

    What changes: the magnitude is rounded down, 1 is added where what is left is more than a half, or a half of an odd number,
    and the sign is put back: that of -0 by its reciprocal. Half floats are computed in float32 between Casts.

    Why equal: each operation is exact. Bit for bit in ONNX Runtime.
    """
    dtype = x.need_dtype()
    kind = _T.DOUBLE if dtype == _T.DOUBLE else _T.FLOAT
    x = x.cast(kind)
    size = abs(x)
    whole = op.Floor(size)
    left = size - whole
    half = op.Floor(whole * 0.5)
    odd = whole - (half + half)
    # What is left of an odd number is a multiple of twice this step, so "at least a half" is "more than a half less the step".
    bound = 0.5 - odd * (2.0**-53 if kind == _T.DOUBLE else 2.0**-24)
    rounded = whole + (left > bound).cast(kind)
    inverse = op.Reciprocal(x)
    negative = (x < 0) | (inverse < 0)
    return (rounded * (1 - negative.cast(kind) * 2)).cast(dtype)


@formula("Sum", since=1)
def total(op: Op, *values: Value) -> Value:
    """It is a chain of Adds.

    Why equal: ONNX Runtime adds the inputs in their order. Bit for bit.
    """
    return reduce(add, values)


@formula("Mean", since=1, exactness=EQUIVALENT)
def mean(op: Op, *values: Value) -> Value:
    """It is the sum of the inputs, divided by their number.

    Why equal: the text. 1.2e-7 seen.
    """
    return values[0] if len(values) == 1 else reduce(add, values) / len(values)


@formula("Max", "Min", since=1)
def extreme(op: Op, *values: Value) -> Value:
    """Elements are selected by a comparison.

    Why equal: the text. The comparison keeps a NaN of the first input, and one of another counts as missing; else bit for
    bit.
    """
    chosen = values[0]
    for value in values[1:]:
        keep = ~(chosen < value if op.operator == "Max" else chosen > value)
        chosen = op.select(keep, chosen, value)
    return chosen


@formula("Neg", since=1)
def negation(op: Op, x: Value) -> Value:
    """It is the product with -1.

    Why equal: bit for bit.
    """
    return x * -1


@formula("Abs", since=1)
def absolute(op: Op, x: Value) -> Value:
    """It is the larger of X and -X.

    Why equal: the text; only the sign of a 0 can differ, and of an unsigned integer nothing is written.
    """
    return x if x.numpy_type.kind in "ub" else op.Max(x, -x)


@formula("Sub", since=1)
def difference(op: Op, a: Value, b: Value) -> Value:
    """It is the sum with the product of the other input and -1.

    Why equal: a - b = a + (-b). Bit for bit; integers wrap around alike.
    """
    kind = b.numpy_type
    minus_one = -1 if kind.kind != "u" else 2 ** (8 * kind.itemsize) - 1  # has the same effect on products
    minus = b * minus_one
    return a + minus


@formula("Reciprocal", since=1)
def reciprocal(op: Op, x: Value) -> Value:
    """It is 1 / X.

    Why equal: the text. Bit for bit.
    """
    return 1 / x


@formula("Sqrt", since=1, exactness=EQUIVALENT)
def root(op: Op, x: Value) -> Value:
    """It is the power of 0.5.

    Why equal: the text; a power may be rounded otherwise, and is 0 for a -0. 1.2e-7 seen.
    """
    return x**0.5


@formula("Ceil", since=1)
def ceil(op: Op, x: Value) -> Value:
    """It is -floor(-X).

    Why equal: an identity of both. Bit for bit.
    """
    return -op.Floor(-x)


@formula("Floor", since=1)
def floor(op: Op, x: Value) -> Value:
    """It is -ceil(-X).

    Why equal: an identity of both. Bit for bit.
    """
    return -op.Ceil(-x)


@formula("Tan", since=7, exactness=EQUIVALENT)
def tangent(op: Op, x: Value) -> Value:
    """It is sin(X) / cos(X).

    Why equal: the definition. 2e-7 of the result seen.
    """
    return op.Sin(x) / op.Cos(x)


@formula("Sinh", "Cosh", since=9, exactness=EQUIVALENT, without=True)
def hyperbolic(op: Op, x: Value) -> Value:
    """It is half the difference, or the sum, of exp(X) and exp(-X).

    Why equal: the definitions. Sinh loses digits near 0: 1.2e-7 seen, of results around 0. Both overflow above 88.7.
    """
    grows, falls = op.Exp(x), op.Exp(-x)
    return (grows - falls if op.operator == "Sinh" else grows + falls) * 0.5


@formula("Asinh", "Acosh", since=9, exactness=EQUIVALENT, without=True)
def inverse_hyperbolic(op: Op, x: Value) -> Value:
    """It is the logarithm of |X| + sqrt(X² + 1), with the sign of X, or of X + sqrt(X² - 1).

    Why equal: the definitions. Asinh loses digits near 0: 1.2e-7 seen, of results around 0. X² overflows above 1.8e19.
    """
    of_sine = op.operator == "Asinh"
    size = abs(x) if of_sine else x
    curve = op.Log(size + op.Sqrt(x * x + (1 if of_sine else -1)))
    return curve * op.sign(x, size) if of_sine else curve


@formula("Atanh", since=9, exactness=EQUIVALENT, without=True)
def inverse_hyperbolic_tangent(op: Op, x: Value) -> Value:
    """It is half the logarithm of (1 + X) / (1 - X).

    Why equal: the definition. It loses digits near 0: 1.2e-7 seen, of results around 0.
    """
    return op.Log((1 + x) / (1 - x)) * 0.5


@formula("Xor", since=1)
def xor(op: Op, a: Value, b: Value) -> Value:
    """Two truth values differ where they are not equal.

    Why equal: the truth table. Bit for bit.
    """
    return ~(a == b)


@formula("Not", since=1)
def negated(op: Op, x: Value) -> Value:
    """A truth value is negated where it equals false.

    Why equal: the truth table. Bit for bit.
    """
    return x == np.array(False)


@formula("Or", since=1)
def disjunction(op: Op, a: Value, b: Value) -> Value:
    """One of two truth values holds where not both are false.

    Why equal: the truth table. Bit for bit.
    """
    return ~(~a & ~b)


@formula("And", since=1)
def conjunction(op: Op, a: Value, b: Value) -> Value:
    """Both truth values hold where their product is not 0.

    Why equal: the truth table. Bit for bit.
    """
    return (a.cast(_T.INT32) * b.cast(_T.INT32)).cast(_T.BOOL)


@formula("Less", "Greater", since=1)
def order(op: Op, a: Value, b: Value) -> Value:
    """Less and Greater are each other with the inputs exchanged.

    Why equal: a < b where b > a. Bit for bit.
    """
    return b > a if op.operator == "Less" else b < a


@formula("ArgMin", since=1)
def arg_min(op: Op, x: Value) -> Value:
    """The place of the minimum is that of the maximum of the negated values.

    Why equal: -X is exact for floats, and its order reversed. Bit for bit.

    Limits: integers are refused, whose least number has no opposite.
    """
    if not x.is_float:
        op.refuse("ArgMin of integers has no equal by ArgMax", code="no-equal")
    return op.ArgMax(-x, **op.attributes)


@formula("Div", since=1, exactness=EQUIVALENT)
def quotient(op: Op, a: Value, b: Value) -> Value:
    """It is the product with the reciprocal, which is computed now where the divisor is a constant.

    Why equal: a / b = a * (1 / b), rounded twice: 1.2e-7 of the result seen.

    Limits: integers are refused. Where 1 / b is not a number that the type has, neither is the result.
    """
    if not a.is_float:
        op.refuse("a quotient of integers is no product", code="no-equal")
    small = b.static is not None and math.prod(b.static) <= _LARGEST
    known = op.rw.constant_value(b.name) if small else None
    if known is not None and known.all():
        return a * (1 / known).astype(known.dtype)
    return a * op.Reciprocal(b)
