"""Clip, Max and Min: conversions of integers, and of bounds that are attributes below opset 11."""

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

    Why equal: an omitted bound stays omitted. In both versions it means the smallest or largest finite number of the data's
    type. So both versions also limit an infinity.
    """
    for index, name in enumerate(("min", "max"), start=1):
        rw.attribute_to_input(name, index, like=node.input[0])


@formula("Clip", since=12, types=LostTypes.OWN)
def clip_12_down(op: Op, x: Value, low: Value | None, high: Value | None) -> Value:
    """Clip supports only floats below opset 12, so integers are clipped by other operators.

    What changes: a float16 node gets explicit bounds in place of omitted ones. ONNX Runtime computes version 11 in float32,
    so it would use the limits of float32. Integers of 8 bits are clipped as float32 between Casts. Other integers become Max
    and Min. So does double, because ONNX Runtime has no kernel of version 11 for it.

    Why equal: the Casts are exact, and the text of Clip is Min(Max(input, min), max). The results are equal bit for bit.
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
    """`min` and `max` move from inputs to float32 attributes.

    What changes: the bounds become attributes if they are constants that float32 represents exactly. Otherwise the node
    becomes Max and Min. Nodes of double also become Max and Min, because ONNX Runtime has no kernel of version 6 for them.
    Nodes with min above max do too, because ONNX Runtime rejects such attributes. An omitted bound means the limit of the
    element type.

    Why equal: the text of Clip is Min(Max(input, min), max). In ONNX Runtime the results are equal bit for bit, including NaN
    and infinities.

    Limits: the element type must be known, unless both bounds are constants.
    """
    arrays = [None if bound is None else bound.constant for bound in (low, high)]
    dtype = x.dtype
    if dtype is None:
        dtypes = (int(onnx.helper.np_dtype_to_tensor_dtype(a.dtype)) for a in arrays if a is not None)
        dtype = next(dtypes, None) or x.need_dtype()
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
    """Return the bounds. For floats, the limits of the type replace omitted bounds."""
    if dtype in INTEGERS:
        return low, high
    limits = np.finfo(onnx.helper.tensor_dtype_to_np_dtype(dtype))
    least, most = (op.constant(np.array(limit, limits.dtype)) for limit in (limits.min, limits.max))
    return least if low is None else low, most if high is None else high


def _bound_by_max_and_min(op: Op, x: Value, low: Value | None, high: Value | None, dtype: int) -> Value:
    """Return Min(Max(x, min), max). The type decides between the form of Max-12 and that of Max-8."""
    for operator, bound in zip(("Max", "Min"), _bounds(op, low, high, dtype), strict=True):
        if bound is not None:
            x = _extreme(op, operator, [x, bound], dtype)
    return x


@formula("Max", "Min", since=12, types=LostTypes.OWN)
def max_12_down(op: Op, *values: Value) -> Value:
    """Max and Min support only floats below opset 12, so integers are cast or compared.

    What changes: integers of 8 and 16 bits are cast to float32, and those of 32 bits to double. Integers of 64 bits are
    compared with Less and selected, pair by pair.

    Why equal: the Casts are exact. ONNX Runtime computes the same bits.
    """
    dtype = values[0].need_dtype()
    return _extreme(op, op.operator, list(values), dtype) if dtype in INTEGERS else op.itself(*values)


def _extreme(op: Op, operator: str, values: list[Value], dtype: int) -> Value:
    """Return the Max or Min of values. Integers are computed without the integer kernels of Max-12."""
    if dtype not in INTEGERS:
        return op.write(operator, *values)
    # Below opset 8, a Max or a Min needs inputs of one shape.
    if len(values) > 1 and dtype not in _WIDE and op.target >= 8:
        wide = _T.FLOAT if dtype in _SMALL else _T.DOUBLE
        return op.write(operator, *[value.cast(wide) for value in values]).cast(dtype)
    extreme = values[0]
    for value in values[1:]:
        less = extreme < value if operator == "Max" else value < extreme
        extreme = op.select(less, value, extreme)
    return extreme


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
    """Clip becomes Max with the lower limit, then Min with the upper one.

    Why equal: the text of Clip defines this order, also for a lower limit above the upper one. The results are equal bit for
    bit.

    Limits: below opset 11 the element type must be known. Below opset 8 onnx-migrate refuses the node, because Max does not
    broadcast there.
    """
    if op.version < 8:
        op.refuse("Max and Min do not broadcast below opset 8", code="no-equal")
    # Below opset 11 an omitted limit means the largest float32, also if X is infinite.
    for operator, limit, bound in (("Max", min, low), ("Min", max, high)):
        if limit is not None or bound is not None:
            x = op.write(operator, x, bound if limit is None else limit)
    return x
