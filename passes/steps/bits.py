"""Operators on bits, computed with integer arithmetic where an older opset does not have them."""

from __future__ import annotations

import numpy as np

from onnx_migrate.engine.steps.formula import LostTypes, Op, TensorProto, Value, formula

_T = TensorProto

_WIDTHS: dict[int, int] = {
    _T.INT8: 8, _T.UINT8: 8, _T.INT16: 16, _T.UINT16: 16, _T.INT32: 32, _T.UINT32: 32, _T.INT64: 64, _T.UINT64: 64,
}  # fmt: skip
_UNSIGNED: dict[int, int] = {8: _T.UINT8, 16: _T.UINT16, 32: _T.UINT32, 64: _T.UINT64}


@formula("BitShift", since=28, types=LostTypes.OWN)
def bit_shift_28_down(op: Op, x: Value, y: Value, *, direction: str) -> Value:
    """BitShift takes unsigned integers alone, and leaves open what a shift by the width or more gives.

    What changes: signed integers are shifted as unsigned ones between Casts; to the right those below 0 as -1 - X, and the
    result is subtracted from -1. Unless Y is known to be less than the width, 0 is selected where it is not.

    Why equal: -1 - X inverts all bits, so that the bits that move in are those of the sign.
    """
    dtype = x.need_dtype()
    width = _WIDTHS[dtype]
    plain = _UNSIGNED[width]
    signed = dtype != plain
    known = y.constant
    safe = known is not None and bool(np.all((known >= 0) & (known < width)))
    if safe and not signed:
        return op.itself(x, y)
    negative = inside = None
    value, amount = x, y
    if signed and direction != "LEFT":
        negative = x < 0
        value = op.select(negative, -1 - x, x)
    if not safe:
        inside = (y < width) & ~(y < 0) if signed else y < width
        amount = op.select(inside, y, 0)
    result = op.BitShift(value.cast(plain), amount.cast(plain), direction=direction).cast(dtype)
    if inside is not None:
        result = op.select(inside, result, 0)
    return result if negative is None else op.select(negative, -1 - result, result)


@formula("BitShift", since=11)
def bit_shift(op: Op, x: Value, y: Value, *, direction: str) -> Value:
    """BitShift begins with opset 11: a product with a power of two, or a quotient.

    Why equal: products of unsigned integers lose their upper bits, as shifts do. Bit for bit in ONNX Runtime.

    Limits: Y must be less than 32, or than 64 for uint64: version 11 leaves open what others give.
    """
    dtype = x.need_dtype()
    wide = _T.UINT64 if dtype == _T.UINT64 else _T.UINT32
    kind = np.dtype(np.uint64 if dtype == _T.UINT64 else np.uint32)
    powers = np.left_shift(kind.type(1), np.arange(kind.itemsize * 8, dtype=kind))
    factor = op.Gather(op.constant(powers), y.cast(_T.INT64), axis=0)
    value = x.cast(wide)
    return (value * factor if direction == "LEFT" else value / factor).cast(dtype)


@formula("BitwiseNot", since=18)
def bitwise_not(op: Op, x: Value) -> Value:
    """BitwiseNot begins with opset 18: it is -1 - X, or the largest number - X of an unsigned type.

    Why equal: two's complement. Bit for bit.
    """
    dtype = x.need_dtype()
    value = x.cast(_T.INT32 if _WIDTHS[dtype] < 32 else dtype)
    kind = value.numpy_type
    return ((np.iinfo(kind).max if kind.kind == "u" else -1) - value).cast(dtype)


@formula("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18)
def bitwise(op: Op, a: Value, b: Value) -> Value:
    """BitwiseAnd, BitwiseOr and BitwiseXor begin with opset 18: bits are computed by division.

    What changes: an And with a known 2^k - 1 is a Mod with 2^k. Otherwise the bits of A and B, on a new last axis, are
    multiplied, and summed with their powers of two: that is And; Or is A + B less this, Xor A + B less twice this.

    Why equal: int64 holds the bits of all types; sums that overflow lose their upper bits. Bit for bit in ONNX Runtime.

    Limits: the bits take 64 times the memory of int8, and 63 times that of int64.
    """
    dtype = a.need_dtype()
    width = _WIDTHS[dtype]
    for value, other in ((a, b), (b, a)):
        mask = other.constant if op.operator == "BitwiseAnd" and width < 64 else None
        power = int(mask.reshape(-1)[0]) + 1 if mask is not None and mask.size == 1 else 0
        if power > 1 and power & (power - 1) == 0 and other.shape == ():
            return op.Mod(value.cast(_T.INT64), op.constant(power)).cast(dtype)
    op.note(
        f"the bits of the two inputs are laid out on an axis of {min(width, 63)} int64 numbers, which takes memory"
    )
    wide_a, wide_b = a.cast(_T.INT64), b.cast(_T.INT64)
    count = min(width, 63)
    powers = op.constant(np.left_shift(np.int64(1), np.arange(count, dtype=np.int64)))
    bits = _bits(op, wide_a, width, powers) * _bits(op, wide_b, width, powers)
    whole = width < 64 or op.target >= 9
    both = _number(op, bits, count, range(count if whole else 32))
    if not whole:
        both = both + _number(op, bits, count, range(32, 63)) * 2**32
    if width == 64:
        sign = ((wide_a < 0) & (wide_b < 0)).cast(_T.INT64)
        both = both + sign * np.iinfo(np.int64).min
    if op.operator != "BitwiseAnd":
        total = wide_a + wide_b
        both = total - (both + both if op.operator == "BitwiseXor" else both)
    return both.cast(dtype)


def _bits(op: Op, value: Value, width: int, powers: Value) -> Value:
    """Return the lower bits of an int64 value on a new last axis: all of its own type's but the sign of 64 bits."""
    negative = (value < 0).cast(_T.INT64)
    positive = value + negative * (np.iinfo(np.int64).min if width == 64 else 2**width)
    quotient = op.Unsqueeze(positive, [-1]) / powers
    half = quotient / 2
    return quotient - (half + half)


def _number(op: Op, bits: Value, count: int, places: range) -> Value:
    """Return the number that the bits at `places` make, of the `count` on the last axis.

    ONNX Runtime's ReduceSum of int64 rounds sums beyond 2^53, and keeps the axis of an empty tensor, so it stands only
    where MatMul takes no integers.
    """
    array = np.zeros(count, np.int64)
    array[places.start : places.stop] = np.left_shift(np.int64(1), np.arange(len(places), dtype=np.int64))
    if op.target >= 9:
        return op.Squeeze(op.MatMul(bits, array[:, None]), [-1])  # as a vector it fails for an empty tensor
    return op.ReduceSum(bits * array, [-1], keepdims=False)
