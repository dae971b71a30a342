"""Operators on bits, computed with integer arithmetic where an older opset does not have them."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, reduce, replace, scalar, squeeze, unsqueeze
from .selecting import select

_T = TensorProto

_WIDTHS: dict[int, int] = {
    _T.INT8: 8, _T.UINT8: 8, _T.INT16: 16, _T.UINT16: 16, _T.INT32: 32, _T.UINT32: 32, _T.INT64: 64, _T.UINT64: 64,
}  # fmt: skip
_UNSIGNED: dict[int, int] = {8: _T.UINT8, 16: _T.UINT16, 32: _T.UINT32, 64: _T.UINT64}


@lowering("BitShift", leaves=28, types=LostTypes.OWN)
def bit_shift_28_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """BitShift takes unsigned integers alone, and leaves open what a shift by the width or more gives.

    What changes: signed integers are shifted as unsigned ones between Casts; to the right those below 0 as -1 - X, and the
    result is subtracted from -1. Unless Y is known to be less than the width, 0 is selected where it is not.

    Why equal: -1 - X inverts all bits, so that the bits that move in are those of the sign.

    Limits: the element type must be known.
    """
    x, y = node.input
    dtype = rw.need_dtype(x)
    width = _WIDTHS[dtype]
    plain = _UNSIGNED[width]
    signed = dtype != plain
    left = rw.get("direction") == "LEFT"
    known = rw.known(y)
    safe = known is not None and bool(np.all((known >= 0) & (known < width)))
    if safe and not signed:
        return
    negative = minus_one = ""
    value = x
    if signed and not left:
        negative, minus_one = rw.before("Less", [x, scalar(rw, 0, x)]), scalar(rw, -1, x)
        value = select(rw, negative, rw.before("Sub", [minus_one, x]), x)
    inside = ""
    amount = y
    if not safe:
        inside = rw.before("Less", [y, scalar(rw, width, y)], hint="inside")
        if signed:
            inside = rw.before("And", [inside, rw.before("Not", [rw.before("Less", [y, scalar(rw, 0, y)])])])
        amount = select(rw, inside, y, scalar(rw, 0, y))
    shifted = rw.before(
        "BitShift",
        [cast(rw, value, plain), cast(rw, amount, plain)],
        hint="shifted",
        direction=rw.get("direction"),
    )
    result = cast(rw, shifted, dtype)
    if inside:
        result = select(rw, inside, result, scalar(rw, 0, x))
    if negative:
        result = select(rw, negative, rw.before("Sub", [minus_one, result]), result)
    replace(rw, result)


@lowering("BitShift", leaves=11)
def bit_shift_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """BitShift begins with opset 11: a product with a power of two, or a quotient.

    What changes: the powers are gathered from a table by Y. Integers of 8 and 16 bits are cast to uint32 and back.

    Why equal: products of unsigned integers lose their upper bits, as shifts do. Bit for bit in ONNX Runtime.

    Limits: Y must be less than 32, or than 64 for uint64: version 11 leaves open what others give. The element type must be
    known.
    """
    dtype = rw.need_dtype(rw.input(0))
    wide = _T.UINT64 if dtype == _T.UINT64 else _T.UINT32
    kind = np.dtype(np.uint64 if dtype == _T.UINT64 else np.uint32)
    powers = rw.constant(np.left_shift(kind.type(1), np.arange(kind.itemsize * 8, dtype=kind)), "powers")
    factor = rw.before("Gather", [powers, cast(rw, rw.input(1), _T.INT64)], axis=0)
    operator = "Mul" if rw.get("direction") == "LEFT" else "Div"
    replace(rw, cast(rw, rw.before(operator, [cast(rw, rw.input(0), wide), factor]), dtype))


@lowering("BitwiseNot", leaves=18)
def bitwise_not_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """BitwiseNot begins with opset 18: it is -1 - X, or the largest number - X of an unsigned type.

    What changes: the node becomes a Sub, of int32 between Casts for integers of 8 and 16 bits.

    Why equal: two's complement. Bit for bit.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    dtype = rw.need_dtype(x)
    wide = _T.INT32 if _WIDTHS[dtype] < 32 else dtype
    value = cast(rw, x, wide)
    ones = rw.constant(
        np.array(
            np.iinfo(rw.numpy_type(value)).max if wide in _UNSIGNED.values() else -1, rw.numpy_type(value)
        ),
        "ones",
    )
    replace(rw, cast(rw, rw.before("Sub", [ones, value]), dtype))


@lowering("BitwiseAnd", "BitwiseOr", "BitwiseXor", leaves=18)
def bitwise_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """BitwiseAnd, BitwiseOr and BitwiseXor begin with opset 18: bits are computed by division.

    What changes: an And with a known 2^k - 1 is a Mod with 2^k. Otherwise the bits of A and B, on a new last axis, are
    multiplied, and summed with their powers of two: that is And; Or is A + B less this, Xor A + B less twice this.

    Why equal: int64 holds the bits of all types; sums that overflow lose their upper bits. Bit for bit in ONNX Runtime.

    Limits: the element type must be known. The bits take 64 times the memory of int8, and 63 times that of int64.
    """
    a, b = node.input
    dtype = rw.need_dtype(a)
    width = _WIDTHS[dtype]
    if node.op_type == "BitwiseAnd":
        for value, mask in ((a, rw.known(b)), (b, rw.known(a))):
            if mask is None or mask.size != 1 or width == 64:
                continue
            power = int(mask.reshape(-1)[0]) + 1
            if power > 1 and power & (power - 1) == 0 and rw.shape(b if value == a else a) == ():
                wide = cast(rw, value, _T.INT64)
                modulus = rw.constant(np.array(power, np.int64), "modulus")
                replace(rw, cast(rw, rw.before("Mod", [wide, modulus]), dtype))
                return
    rw.note(
        f"the bits of the two inputs are laid out on an axis of {min(width, 63)} int64 numbers, which takes memory"
    )
    wide_a, wide_b = cast(rw, a, _T.INT64), cast(rw, b, _T.INT64)
    count = min(width, 63)
    powers = rw.constant(np.left_shift(np.int64(1), np.arange(count, dtype=np.int64)), "powers")
    bits = rw.before("Mul", [_bits(rw, value, width, powers) for value in (wide_a, wide_b)], hint="bits")
    whole = width < 64 or rw.target >= 9
    both = _number(rw, bits, count, range(count if whole else 32))
    if not whole:
        upper = rw.before("Mul", [_number(rw, bits, count, range(32, 63)), scalar(rw, 2**32, wide_a)])
        both = rw.before("Add", [both, upper])
    if width == 64:
        signs = [rw.before("Less", [value, scalar(rw, 0, value)]) for value in (wide_a, wide_b)]
        sign = cast(rw, rw.before("And", signs), _T.INT64)
        lowest = scalar(rw, np.iinfo(np.int64).min, wide_a)
        both = rw.before("Add", [both, rw.before("Mul", [sign, lowest])])
    if node.op_type != "BitwiseAnd":
        total = rw.before("Add", [wide_a, wide_b])
        both = rw.before("Add", [both, both]) if node.op_type == "BitwiseXor" else both
        both = rw.before("Sub", [total, both])
    replace(rw, cast(rw, both, dtype))


def _bits(rw: LoweringRewriter, value: str, width: int, powers: str) -> str:
    """Return the lower bits of an int64 value on a new last axis: all of its own type's but the sign of 64 bits."""
    zero = scalar(rw, 0, value)
    negative = cast(rw, rw.before("Less", [value, zero]), _T.INT64)
    offset = np.iinfo(np.int64).min if width == 64 else 2**width
    positive = rw.before("Add", [value, rw.before("Mul", [negative, scalar(rw, offset, value)])])
    quotient = rw.before("Div", [unsqueeze(rw, positive, [-1]), powers], hint="quotient")
    half = rw.before("Div", [quotient, scalar(rw, 2, value)])
    return rw.before("Sub", [quotient, rw.before("Add", [half, half])], hint="bits")


def _number(rw: LoweringRewriter, bits: str, count: int, places: range) -> str:
    """Return the number that the bits at `places` make, of the `count` on the last axis.

    ONNX Runtime's ReduceSum of int64 rounds sums beyond 2^53, and keeps the axis of an empty tensor, so it stands only
    where MatMul takes no integers.
    """
    array = np.zeros(count, np.int64)
    array[places.start : places.stop] = np.left_shift(np.int64(1), np.arange(len(places), dtype=np.int64))
    if rw.target >= 9:
        column = rw.constant(array[:, None], "weights")  # as a vector it fails for an empty tensor
        return squeeze(rw, rw.before("MatMul", [bits, column], hint="number"), [-1])
    weighted = rw.before("Mul", [bits, rw.constant(array, "weights")])
    return reduce(rw, "ReduceSum", weighted, [-1], keepdims=False)
