"""Comparisons, and the tests for NaN, infinity and sign: for types that the older version does not take, and where they begin."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import FLOATS, INTEGERS, cast, scalar

_T = TensorProto
_WIDE = (_T.INT64, _T.UINT64)
_SMALL = (_T.INT8, _T.INT16, _T.UINT8, _T.UINT16)
_BASE = 2**32


@lowering("GreaterOrEqual", "LessOrEqual", leaves=12)
def or_equal_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """GreaterOrEqual and LessOrEqual begin with opset 12: Greater or Less, or Equal.

    What changes: the node becomes an Or of the two comparisons. Of floats below opset 11, where Equal does not take them,
    it becomes: not less (or greater), and neither value is NaN.

    Why equal: the text. Not(Less) alone would be wrong for NaN. Bit for bit in ONNX Runtime.

    Limits: below opset 11 the element type must be known.
    """
    a, b = node.input
    greater = node.op_type == "GreaterOrEqual"
    strict, opposite = ("Greater", "Less") if greater else ("Less", "Greater")
    if rw.target < 11 and rw.need_dtype(a) in FLOATS:
        parts = [rw.before("Not", [rw.before(opposite, [a, b])]), *_ordered(rw, (a, b))]
        for part in parts[1:-1]:
            parts[0] = rw.before("And", [parts[0], part])
        rw.rename("And")
        rw.set_input(0, parts[0])
        rw.set_input(1, parts[-1])
        if len(parts) == 1:
            rw.rename("Identity")
            rw.set_input(1, "")
        return
    rw.rename("Or")
    rw.set_input(0, rw.before(strict, [a, b]))
    rw.set_input(1, rw.before("Equal", [a, b]))


@lowering("Equal", leaves=11, types=LostTypes.OWN)
def equal_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Equal takes bool, int32 and int64 alone.

    What changes: other integers are cast to int32 or int64. Floats are equal if neither is less than the other, and neither is
    NaN.

    Why equal: the Casts map different integers to different ones (uint64 to int64 keeps the bits). Bit for bit in ONNX Runtime
    over all pairs of special values.

    Limits: the element type must be known.
    """
    a, b = node.input
    dtype = rw.need_dtype(a)
    if dtype in (_T.BOOL, _T.INT32, _T.INT64):
        return
    if dtype in INTEGERS:
        wide = _T.INT32 if dtype in _SMALL else _T.INT64
        rw.set_input(0, cast(rw, a, wide))
        rw.set_input(1, cast(rw, b, wide))
        return
    if dtype not in FLOATS:
        rw.refuse("values of this type cannot be compared below opset 11", code="no-equal")
    different = rw.before("Or", [rw.before("Less", [a, b]), rw.before("Greater", [a, b])])
    ordered = _ordered(rw, (a, b))
    if not ordered:
        rw.rename("Not")
        rw.set_input(0, different)
        rw.set_input(1, "")
        return
    same = rw.before("Not", [different])
    for part in ordered[:-1]:
        same = rw.before("And", [same, part])
    rw.rename("And")
    rw.set_input(0, same)
    rw.set_input(1, ordered[-1])


def _ordered(rw: LoweringRewriter, values: tuple[str, ...]) -> list[str]:
    """Return for each value that is not known to be free of NaN where it is none."""
    found = []
    for value in dict.fromkeys(values):
        shape = rw.shape(value)
        small = shape is not None and None not in shape and np.prod([size or 0 for size in shape]) <= 4096
        constant = rw.constant_value(value) if small else None
        if constant is None or bool(np.isnan(constant).any()):
            found.append(not_nan(rw, value))
    return found


def not_nan(rw: LoweringRewriter, x: str) -> str:
    """Return where a value is no NaN."""
    if rw.version >= 9:
        return rw.before("Not", [rw.before("IsNaN", [x])], hint="ordered")
    sides = [
        rw.before("Less", [x, scalar(rw, np.inf, x)]),
        rw.before("Greater", [x, scalar(rw, -np.inf, x)]),
    ]
    return rw.before("Or", sides, hint="ordered")


@lowering("Greater", "Less", leaves=9, types=LostTypes.OWN)
def ordered_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Greater and Less take floats alone.

    What changes: integers of 8 and 16 bits are cast to float32, those of 32 bits to double. Those of 64 bits are compared by
    their upper halves, and where these are equal by their lower ones, all cast to double.

    Why equal: the Casts are exact. x = upper * 2^32 + lower, with upper = x / 2^32 rounded towards 0, is ordered as the pair.
    Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    a, b = node.input
    dtype = rw.need_dtype(a)
    if dtype in FLOATS:
        return
    if dtype not in _WIDE:
        wide = _T.FLOAT if dtype in _SMALL else _T.DOUBLE
        rw.set_input(0, cast(rw, a, wide))
        rw.set_input(1, cast(rw, b, wide))
        return
    pairs = []
    for value in (a, b):
        base = scalar(rw, _BASE, value)
        upper = rw.before("Div", [value, base], hint="upper")
        lower = rw.before("Sub", [value, rw.before("Mul", [upper, base])], hint="lower")
        pairs.append([cast(rw, part, _T.DOUBLE, hint="exact") for part in (upper, lower)])
    (upper_a, lower_a), (upper_b, lower_b) = pairs
    decided = rw.before(node.op_type, [upper_a, upper_b])
    opposite = rw.before("Less" if node.op_type == "Greater" else "Greater", [upper_a, upper_b])
    undecided = rw.before("Not", [rw.before("Or", [decided, opposite])])
    lower = rw.before(node.op_type, [lower_a, lower_b])
    rw.rename("Or")
    rw.set_input(0, decided)
    rw.set_input(1, rw.before("And", [undecided, lower]))


@lowering("IsInf", leaves=10)
def is_inf_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """IsInf begins with opset 10: a value beyond the largest finite one.

    What changes: Greater and Less with the largest finite number of the type and its negative, of which the attributes choose.

    Why equal: only infinities are beyond; NaN is not. Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    largest = float(np.finfo(rw.numpy_type(x)).max)
    positive, negative = rw.pop("detect_positive", 1), rw.pop("detect_negative", 1)
    if positive and negative:
        rw.set_input(0, rw.before("Abs", [x]))
    rw.rename("Greater" if positive or not negative else "Less")
    if positive or negative:
        rw.set_input(1, scalar(rw, largest if positive else -largest, x))
    else:
        rw.set_input(1, x)  # nothing is greater than itself


@lowering("IsNaN", leaves=9)
def is_nan_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """IsNaN begins with opset 9: neither less than infinity nor greater than minus infinity.

    What changes: Less, Greater and Or in front of the node, which becomes a Not.

    Why equal: of all values only NaN is neither. Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    rw.set_input(0, not_nan(rw, rw.input(0)))
    rw.rename("Not")


@lowering("Sign", leaves=9)
def sign_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Sign begins with opset 9: whether a value is greater than 0 minus whether it is less.

    What changes: Greater and Less, cast to the type, and Sub. Integers are compared as floats. To float32 and double,
    0 * Clip(x, -1, 1) is added, so that NaN stays NaN; of float16, ONNX Runtime's Sign gives 0 for NaN.

    Why equal: the text; a Cast to float keeps the sign. Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    dtype = rw.need_dtype(x)
    compared = x if dtype in FLOATS else cast(rw, x, _T.FLOAT if dtype in _SMALL else _T.DOUBLE)
    zero = scalar(rw, 0, compared)
    wide = dtype if dtype not in _SMALL else _T.INT32
    sides = [cast(rw, rw.before(side, [compared, zero]), wide) for side in ("Greater", "Less")]
    if dtype in (_T.FLOAT, _T.DOUBLE):
        bounded = rw.before("Clip", [x], min=-1.0, max=1.0)
        rw.rename("Add")
        rw.set_input(0, rw.before("Sub", sides))
        rw.set_input(1, rw.before("Mul", [bounded, zero]))
    elif wide == dtype:
        rw.rename("Sub")
        rw.set_input(0, sides[0])
        rw.set_input(1, sides[1])
    else:
        rw.rename("Cast")
        rw.set_input(0, rw.before("Sub", sides))
        rw.set("to", dtype)
