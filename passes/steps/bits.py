"""Operators on bits, computed with integer arithmetic for older opsets that lack them."""

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
    """Below opset 28 BitShift supports only unsigned integers, and does not define shifts by the width or more.

    What changes: signed integers are cast to unsigned ones, shifted and cast back. To shift a negative X to the right, -1 - X
    is shifted, and the result is subtracted from -1. A selection returns 0 for each Y that is not below the width. It is
    omitted if Y is known to be smaller.

    Why equal: -1 - X inverts all bits, so the bits that move in are equal to the sign.
    """
    dtype = x.need_dtype()
    width = _WIDTHS[dtype]
    plain = _UNSIGNED[width]
    signed = dtype != plain
    array = y.constant
    safe = array is not None and bool(np.all((array >= 0) & (array < width)))
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
    """BitShift begins with opset 11, so a product with a power of two, or a quotient, replaces it.

    Why equal: products of unsigned integers lose their upper bits, as shifts do. ONNX Runtime computes the same bits.

    Limits: Y must be less than 32, or less than 64 for uint64. Version 11 does not define the result for larger Y.
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
    """BitwiseNot begins with opset 18, so -1 - X replaces it, or the largest number - X for an unsigned type.

    Why equal: this is the definition of two's complement. The results are equal bit for bit.
    """
    dtype = x.need_dtype()
    value = x.cast(_T.INT32 if _WIDTHS[dtype] < 32 else dtype)
    kind = value.numpy_type
    return ((np.iinfo(kind).max if kind.kind == "u" else -1) - value).cast(dtype)


@formula("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18)
def bitwise(op: Op, a: Value, b: Value) -> Value:
    """BitwiseAnd, BitwiseOr and BitwiseXor begin with opset 18, so divisions compute the bits.

    What changes: an And with a constant 2^k - 1 becomes a Mod with 2^k. Otherwise the bits of A and B are laid out on a new
    last axis and multiplied. Their sum with the powers of two is And. Or is A + B less this sum. Xor is A + B less twice this
    sum.

    Why equal: int64 holds the bits of all types, and sums that overflow lose their upper bits. ONNX Runtime computes the same
    bits.

    Limits: the bits of int8 take 64 times its memory, and those of int64 take 63 times.
    """
    dtype = a.need_dtype()
    width = _WIDTHS[dtype]
    for value, other in ((a, b), (b, a)):
        mask = other.constant if op.operator == "BitwiseAnd" and width < 64 else None
        power = int(mask.reshape(-1)[0]) + 1 if mask is not None and mask.size == 1 else 0
        # Mod keeps the bits below a power of two, as an And with one less than this power does.
        if power > 1 and power & (power - 1) == 0 and other.shape == ():
            return op.Mod(value.cast(_T.INT64), op.constant(power)).cast(dtype)
    op.note(
        f"the bits of the two inputs are laid out on an axis of {min(width, 63)} int64 numbers, which takes memory"
    )
    wide_a, wide_b = a.cast(_T.INT64), b.cast(_T.INT64)
    # The sign bit of int64 is no positive power of two in int64, so it follows apart from the others.
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
    """Return the lower bits of an int64 value on a new last axis. For 64-bit types the sign is not among them."""
    negative = (value < 0).cast(_T.INT64)
    positive = value + negative * (np.iinfo(np.int64).min if width == 64 else 2**width)
    quotient = op.Unsqueeze(positive, [-1]) / powers
    half = quotient / 2
    return quotient - (half + half)


def _number(op: Op, bits: Value, count: int, places: range) -> Value:
    """Return the number that the bits at `places` form. The last axis holds `count` bits.

    ONNX Runtime's ReduceSum of int64 rounds sums beyond 2^53 and keeps the axis of an empty tensor. So ReduceSum is used only
    below opset 9, where MatMul does not support integers.
    """
    array = np.zeros(count, np.int64)
    array[places.start : places.stop] = np.left_shift(np.int64(1), np.arange(len(places), dtype=np.int64))
    if op.target >= 9:
        return op.Squeeze(op.MatMul(bits, array[:, None]), [-1])  # as a vector it fails for an empty tensor
    return op.ReduceSum(bits * array, [-1], keepdims=False)
