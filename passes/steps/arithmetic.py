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
"""A constant divisor of at most this many elements is replaced by its reciprocal during the migration."""

for _operator in ("Acosh", "Asinh", "Atanh", "Cosh", "Erf", "Sinh"):
    impossible(
        _operator,
        9,
        why=f"{_operator} begins with opset 9, and formulas of older operators give other digits",
    )


@formula("Pow", since=12, types=LostTypes.OWN)
def pow_12_down(op: Op, base: Value, exponent: Value) -> Value:
    """Below opset 12 both inputs of Pow have the same float type.

    What changes: a constant exponent is converted to the type of a float base, if that type represents it exactly. Otherwise
    base and exponent are cast to double, and the power is cast to the type of the base.

    Why equal: ONNX Runtime computes powers of other types in double. The results are equal bit for bit over all pairs of
    types and special values.

    Limits: a runtime that computes powers of int64 as integers differs beyond 2^53.
    """
    kind, other = base.need_dtype(), exponent.need_dtype()
    if kind in FLOATS and kind == other:
        return op.itself(base, exponent)
    array = exponent.constant
    if kind in FLOATS and array is not None:
        narrow = array.astype(base.numpy_type)
        if np.array_equal(narrow.astype(np.float64), array.astype(np.float64)):
            return op.itself(base, narrow)
    return op.Cast(op.itself(base.cast(_T.DOUBLE), exponent.cast(_T.DOUBLE)), to=kind)


@formula("Mod", since=28)
def mod_28_down(op: Op, a: Value, b: Value, *, fmod: int) -> Value:
    """Below opset 28 Mod with fmod=0 supports only integers, so floats use fmod=1 and a correction.

    What changes: for floats, the node becomes r = Mod(A, B) with fmod=1. B is added to r if their signs differ. If r is 0, it
    gets the sign of B.

    Why equal: the text lists these special cases. The results equal numpy.mod bit for bit over all pairs of special values.
    """
    if fmod == 1 or not a.is_float:
        return op.itself(a, b)
    rest = op.Mod(a, b, fmod=1)
    below, above = rest < 0, rest > 0
    divisor_below = b < 0
    differs = (below | above) & (below ^ divisor_below)
    signed_zero = op.Where(~divisor_below, op.constant(0, b), op.constant(-0.0, b))
    # NaN stays, because it is not equal to 0.
    settled = op.select(rest == 0, signed_zero, rest)
    return op.select(differs, rest + b, settled)


@formula("Mod", since=10)
def mod(op: Op, a: Value, b: Value, *, fmod: int) -> Value:
    """Mod begins with opset 10, so integers use A - (A / B) * B with a correction for the sign.

    What changes: the node becomes Div, Mul and Sub. B is added where the rest is not 0 and its sign differs from that of B.
    Nodes with `fmod` = 1 and unsigned types do not need this addition. Integers of 8 and 16 bits are cast to int32.

    Why equal: the text defines this rest, and Div rounds integers towards 0. ONNX Runtime computes the same bits.

    Limits: onnx-migrate refuses floats. A - (A / B) * B is rounded, but the rest of a float division is exact.
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
    """Round begins with opset 11, so Floor and a comparison round halves to the even neighbour.

    What changes: Floor rounds the magnitude down. 1 is added if the fraction is above one half, or if it is one half and the
    integer part is odd. The sign is restored at the end. The reciprocal shows the sign of -0. Half floats are computed in
    float32 between Casts.

    Why equal: each operation is exact. ONNX Runtime computes the same bits.
    """
    dtype = x.need_dtype()
    kind = _T.DOUBLE if dtype == _T.DOUBLE else _T.FLOAT
    x = x.cast(kind)
    size = abs(x)
    whole = op.Floor(size)
    fraction = size - whole
    half = op.Floor(whole * 0.5)
    odd = whole - (half + half)
    # For an odd number, the fraction is a multiple of twice this step.
    # So "at least one half" is the same as "more than one half minus the step".
    bound = 0.5 - odd * (2.0**-53 if kind == _T.DOUBLE else 2.0**-24)
    rounded = whole + (fraction > bound).cast(kind)
    inverse = op.Reciprocal(x)
    negative = (x < 0) | (inverse < 0)
    return (rounded * (1 - negative.cast(kind) * 2)).cast(dtype)


@formula("Sum", since=1)
def total(op: Op, *values: Value) -> Value:
    """Sum becomes a chain of Adds.

    Why equal: ONNX Runtime adds the inputs in their order. The results are equal bit for bit.
    """
    return reduce(add, values)


@formula("Mean", since=1, exactness=EQUIVALENT)
def mean(op: Op, *values: Value) -> Value:
    """Mean becomes the sum of the inputs, divided by their number.

    Why equal: the text defines the mean so. The largest difference seen is 1.2e-7.
    """
    return values[0] if len(values) == 1 else reduce(add, values) / len(values)


@formula("Max", "Min", since=1)
def extreme(op: Op, *values: Value) -> Value:
    """Max and Min become comparisons that select elements.

    Why equal: the text defines them so. The comparison returns a NaN of the first input. It ignores a NaN of the other
    inputs. All other results are equal bit for bit.
    """
    chosen = values[0]
    for value in values[1:]:
        keep = ~(chosen < value if op.operator == "Max" else chosen > value)
        chosen = op.select(keep, chosen, value)
    return chosen


@formula("Neg", since=1)
def negation(op: Op, x: Value) -> Value:
    """Neg becomes the product with -1.

    Why equal: the results are equal bit for bit.
    """
    return x * -1


@formula("Abs", since=1)
def absolute(op: Op, x: Value) -> Value:
    """Abs becomes the larger of X and -X.

    Why equal: the text defines it so. Only the sign of a 0 can differ. An unsigned integer is its own magnitude, so the node
    is removed.
    """
    return x if x.numpy_type.kind in "ub" else op.Max(x, -x)


@formula("Sub", since=1)
def difference(op: Op, a: Value, b: Value) -> Value:
    """Sub becomes the sum of A and B * -1.

    Why equal: a - b = a + (-b). The results are equal bit for bit, and integers wrap around in the same way.
    """
    kind = b.numpy_type
    minus_one = -1 if kind.kind != "u" else 2 ** (8 * kind.itemsize) - 1  # has the same effect on products
    minus = b * minus_one
    return a + minus


@formula("Reciprocal", since=1)
def reciprocal(op: Op, x: Value) -> Value:
    """Reciprocal becomes the quotient 1 / X.

    Why equal: the text defines it so. The results are equal bit for bit.
    """
    return 1 / x


@formula("Sqrt", since=1, exactness=EQUIVALENT)
def root(op: Op, x: Value) -> Value:
    """Sqrt becomes the power of 0.5.

    Why equal: the text defines it so. A runtime may round a power differently, and the power of -0 is 0. The largest
    difference seen is 1.2e-7.
    """
    return x**0.5


@formula("Ceil", since=1)
def ceil(op: Op, x: Value) -> Value:
    """Ceil becomes -floor(-X).

    Why equal: this identity holds for all X. The results are equal bit for bit.
    """
    return -op.Floor(-x)


@formula("Floor", since=1)
def floor(op: Op, x: Value) -> Value:
    """Floor becomes -ceil(-X).

    Why equal: this identity holds for all X. The results are equal bit for bit.
    """
    return -op.Ceil(-x)


@formula("Tan", since=7, exactness=EQUIVALENT)
def tangent(op: Op, x: Value) -> Value:
    """Tan becomes sin(X) / cos(X).

    Why equal: this is the definition. The largest difference seen is 2e-7 of the result.
    """
    return op.Sin(x) / op.Cos(x)


@formula("Sinh", "Cosh", since=9, exactness=EQUIVALENT, without=True)
def hyperbolic(op: Op, x: Value) -> Value:
    """Sinh and Cosh become half the difference, or half the sum, of exp(X) and exp(-X).

    Why equal: these are the definitions. Sinh loses digits near 0: the largest difference seen is 1.2e-7, for results around
    0. Both overflow above 88.7.
    """
    grows, falls = op.Exp(x), op.Exp(-x)
    return (grows - falls if op.operator == "Sinh" else grows + falls) * 0.5


@formula("Asinh", "Acosh", since=9, exactness=EQUIVALENT, without=True)
def inverse_hyperbolic(op: Op, x: Value) -> Value:
    """Asinh and Acosh become the logarithm of X plus a square root.

    Why equal: Asinh is log(|X| + sqrt(X² + 1)) with the sign of X, and Acosh is log(X + sqrt(X² - 1)). Asinh loses digits
    near 0: the largest difference seen is 1.2e-7, for results around 0. X² overflows above 1.8e19.
    """
    of_sine = op.operator == "Asinh"
    size = abs(x) if of_sine else x
    curve = op.Log(size + op.Sqrt(x * x + (1 if of_sine else -1)))
    return curve * op.sign(x, size) if of_sine else curve


@formula("Atanh", since=9, exactness=EQUIVALENT, without=True)
def inverse_hyperbolic_tangent(op: Op, x: Value) -> Value:
    """Atanh becomes half the logarithm of (1 + X) / (1 - X).

    Why equal: this is the definition. It loses digits near 0: the largest difference seen is 1.2e-7, for results around 0.
    """
    return op.Log((1 + x) / (1 - x)) * 0.5


@formula("Xor", since=1)
def xor(op: Op, a: Value, b: Value) -> Value:
    """Xor becomes Not(Equal): two truth values differ if they are not equal.

    Why equal: the truth tables are the same. The results are equal bit for bit.
    """
    return ~(a == b)


@formula("Not", since=1)
def negated(op: Op, x: Value) -> Value:
    """Not becomes a comparison with false.

    Why equal: the truth tables are the same. The results are equal bit for bit.
    """
    return x == np.array(False)


@formula("Or", since=1)
def disjunction(op: Op, a: Value, b: Value) -> Value:
    """Or becomes Not(And(Not(A), Not(B))).

    Why equal: one of two truth values is true if not both are false. The results are equal bit for bit.
    """
    return ~(~a & ~b)


@formula("And", since=1)
def conjunction(op: Op, a: Value, b: Value) -> Value:
    """And becomes a product of int32 values, cast to bool.

    Why equal: the product of two truth values is not 0 if both are true. The results are equal bit for bit.
    """
    return (a.cast(_T.INT32) * b.cast(_T.INT32)).cast(_T.BOOL)


@formula("Less", "Greater", since=1)
def order(op: Op, a: Value, b: Value) -> Value:
    """Less becomes Greater with exchanged inputs, and Greater becomes Less.

    Why equal: a < b holds exactly if b > a. The results are equal bit for bit.
    """
    return b > a if op.operator == "Less" else b < a


@formula("ArgMin", since=1)
def arg_min(op: Op, x: Value) -> Value:
    """ArgMin becomes ArgMax of the negated values.

    Why equal: -X is exact for floats and reverses their order. The results are equal bit for bit.

    Limits: onnx-migrate refuses integers, because their lowest number has no negative.
    """
    if not x.is_float:
        op.refuse("ArgMin of integers has no equal by ArgMax", code="no-equal")
    return op.ArgMax(-x, **op.attributes)


@formula("Div", since=1, exactness=EQUIVALENT)
def quotient(op: Op, a: Value, b: Value) -> Value:
    """Div becomes the product with the reciprocal. The reciprocal of a small constant divisor is computed in advance.

    Why equal: a / b = a * (1 / b). The product is rounded twice: the largest difference seen is 1.2e-7 of the result.

    Limits: onnx-migrate refuses integers. If the type cannot represent 1 / b, the result is wrong too.
    """
    if not a.is_float:
        op.refuse("a quotient of integers is no product", code="no-equal")
    small = b.static is not None and math.prod(b.static) <= _LARGEST
    array = op.rw.constant_value(b.name) if small else None
    if array is not None and array.all():
        return a * (1 / array).astype(array.dtype)
    return a * op.Reciprocal(b)
