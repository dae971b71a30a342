"""Clip, Max and Min: integers, and bounds that are attributes below opset 11."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.formula import INTEGERS, LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.plugins import Rewriter, adapter, compatible

_T = TensorProto
_SMALL = (_T.INT8, _T.INT16, _T.UINT8, _T.UINT16)
_WIDE = (_T.INT64, _T.UINT64)

compatible(
    "Clip",
    13,
    reason="more types are allowed, and the result for min > max is specified: max, as runtimes computed it",
)


@adapter("Clip", to=11)
def clip_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`min` and `max` move from attributes to inputs of the data's type.

    Why equal: an omitted bound is the smallest or largest finite number of the data's type in both versions, so an
    infinity is clipped too; it stays omitted.
    """
    for index, name in enumerate(("min", "max"), start=1):
        rw.attribute_to_input(name, index, like=node.input[0])


@formula("Clip", since=12, types=LostTypes.OWN)
def clip_12_down(op: Op, x: Value, low: Value | None, high: Value | None) -> Value:
    """Clip takes floats alone.

    What changes: of float16, a bound that is left out is written out, since ONNX Runtime computes version 11 in float32,
    with the limits of that. Integers of 8 bits are clipped as float32 between Casts. Other integers, and double, for which
    ONNX Runtime has no kernel of version 11, become Max and Min.

    Why equal: the Casts are exact, and the text of Clip is Min(Max(input, min), max). Bit for bit.
    """
    dtype = x.need_dtype()
    if dtype == _T.FLOAT16:
        low, high = _bounds(op, low, high, dtype)
    if dtype in (_T.FLOAT, _T.FLOAT16):
        return op.itself(x, low, high)
    if dtype in (_T.INT8, _T.UINT8) and low is not None and high is not None:
        return op.itself(x.cast(_T.FLOAT), low.cast(_T.FLOAT), high.cast(_T.FLOAT)).cast(dtype)
    return _bound_by_max_and_min(op, x, low, high, dtype)


@formula("Clip", since=11)
def clip_11_down(op: Op, x: Value, low: Value | None, high: Value | None) -> Value:
    """The bounds are attributes, of float32.

    What changes: `min` and `max` move to attributes if they are constants that float32 holds. Otherwise, and of double, for which
    ONNX Runtime has no kernel of version 6, Max and Min are written; also if min is above max, which ONNX Runtime refuses in
    attributes. A bound that is left out is the limit of the element type.

    Why equal: the text of Clip is Min(Max(input, min), max). Bit for bit in ONNX Runtime, NaN and infinities included.

    Limits: the element type must be known, unless both bounds are constants.
    """
    arrays = [None if bound is None else bound.constant for bound in (low, high)]
    dtype = x.dtype
    if dtype is None:
        found = (int(onnx.helper.np_dtype_to_tensor_dtype(a.dtype)) for a in arrays if a is not None)
        dtype = next(found, None) or x.need_dtype()
    fits = all(
        bound is None
        or (array is not None and array.size == 1 and float(np.float32(array.item())) == array.item())
        for bound, array in zip((low, high), arrays, strict=True)
    )
    if dtype == _T.DOUBLE or not fits:
        return _bound_by_max_and_min(op, x, low, high, dtype)
    least, most = (None if array is None else float(array.reshape(-1)[0]) for array in arrays)
    if least is not None and most is not None and least > most:
        return _bound_by_max_and_min(op, x, low, high, dtype)
    return op.itself(x, min=least, max=most)


def _bounds(op: Op, low: Value | None, high: Value | None, dtype: int) -> tuple[Value | None, Value | None]:
    """Return the bounds; of floats those that are left out are the limits of the type."""
    if dtype in INTEGERS:
        return low, high
    limits = np.finfo(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    least, most = (op.constant(np.array(limit, limits.dtype)) for limit in (limits.min, limits.max))
    return least if low is None else low, most if high is None else high


def _bound_by_max_and_min(op: Op, x: Value, low: Value | None, high: Value | None, dtype: int) -> Value:
    """Return Min(Max(x, min), max), in the form of Max-12 or Max-8 as the type asks for."""
    for operator, bound in zip(("Max", "Min"), _bounds(op, low, high, dtype), strict=True):
        if bound is not None:
            x = _extreme(op, operator, [x, bound], dtype)
    return x


@formula("Max", "Min", since=12, types=LostTypes.OWN)
def max_12_down(op: Op, *values: Value) -> Value:
    """Max and Min take floats alone.

    What changes: integers of 8 and 16 bits are cast to float32, those of 32 bits to double. Those of 64 bits are compared with
    Less, and selected, pair by pair.

    Why equal: the Casts are exact. Bit for bit in ONNX Runtime.
    """
    dtype = values[0].need_dtype()
    return _extreme(op, op.operator, list(values), dtype) if dtype in INTEGERS else op.itself(*values)


def _extreme(op: Op, operator: str, values: list[Value], dtype: int) -> Value:
    """Return the Max or Min, of integers written without those of Max-12."""
    if dtype not in INTEGERS:
        return op.write(operator, *values)
    if len(values) > 1 and dtype not in _WIDE and op.target >= 8:
        wide = _T.FLOAT if dtype in _SMALL else _T.DOUBLE
        return op.write(operator, *[value.cast(wide) for value in values]).cast(dtype)
    found = values[0]
    for value in values[1:]:
        less = found < value if operator == "Max" else value < found
        found = op.select(less, value, found)
    return found


@formula("Clip", since=1)
def clip(
    op: Op,
    x: Value,
    low: Value | None,
    high: Value | None,
    *,
    min: float | None,  # noqa: A002
    max: float | None,  # noqa: A002
) -> Value:
    """The larger of X and the lower limit, and the smaller of that and the upper one.

    Why equal: the text, for a lower limit above the upper one too. Bit for bit.

    Limits: the element type must be known below opset 11; below opset 8 Max does not broadcast, so it is refused there.
    """
    if op.version < 8:
        op.refuse("Max and Min do not broadcast below opset 8", code="no-equal")
    # Below opset 11 a limit that is left out is the largest float32, also where X is infinite.
    for operator, limit, bound in (("Max", min, low), ("Min", max, high)):
        if limit is not None or bound is not None:
            x = op.write(operator, x, bound if limit is None else limit)
    return x
