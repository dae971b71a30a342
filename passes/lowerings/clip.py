"""Clip, Max and Min: integers, and bounds that move to attributes."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import INTEGERS, cast
from .selecting import select

_T = TensorProto
_SMALL = (_T.INT8, _T.INT16, _T.UINT8, _T.UINT16)
_WIDE = (_T.INT64, _T.UINT64)


@lowering("Clip", leaves=12, types=LostTypes.OWN)
def clip_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Clip takes floats alone.

    What changes: of float16, a bound that is left out is written out, since ONNX Runtime computes version 11 in float32,
    with the limits of that. Integers of 8 bits are clipped as float32 between Casts. Other integers, and double, for which
    ONNX Runtime has no kernel of version 11, become Max and Min.

    Why equal: the Casts are exact, and the text of Clip is Min(Max(input, min), max). Bit for bit.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    dtype = rw.need_dtype(x)
    if dtype == _T.FLOAT16:
        for index, limit in ((1, np.finfo(np.float16).min), (2, np.finfo(np.float16).max)):
            if not rw.input(index):
                rw.set_input(index, rw.constant(np.array(limit), "limit"))
    if dtype in (_T.FLOAT, _T.FLOAT16):
        return
    if dtype in (_T.INT8, _T.UINT8) and rw.input(1) and rw.input(2):
        rw.cast_around([0, 1, 2], [0], _T.FLOAT, dtype)
        return
    _bound_by_max_and_min(rw, dtype)


@lowering("Clip", leaves=11)
def clip_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The bounds are attributes, of float32.

    What changes: `min` and `max` move to attributes if they are constants that float32 holds. Otherwise, and of double, for which
    ONNX Runtime has no kernel of version 6, Max and Min are written. A bound that is left out is the limit of the element
    type.

    Why equal: the text of Clip is Min(Max(input, min), max). Bit for bit in ONNX Runtime, NaN and infinities included.

    Limits: the element type must be known, unless both bounds are constants.
    """
    bounds = [rw.input(index) for index in (1, 2)]
    arrays = [rw.known(bound) if bound else None for bound in bounds]
    dtype = rw.dtype(rw.input(0))
    if dtype is None:
        dtype = next(
            (int(onnx.helper.np_dtype_to_tensor_dtype(a.dtype)) for a in arrays if a is not None), None
        )
    if dtype is None:
        dtype = rw.need_dtype(rw.input(0))
    fits = all(
        not bound
        or (array is not None and array.size == 1 and float(np.float32(array.item())) == array.item())
        for bound, array in zip(bounds, arrays, strict=True)
    )
    if dtype == _T.DOUBLE or not fits:
        _bound_by_max_and_min(rw, dtype)
        return
    del node.input[1:]
    for name, array in zip(("min", "max"), arrays, strict=True):
        if array is not None:
            rw.set(name, float(array.reshape(-1)[0]))


def _bound_by_max_and_min(rw: LoweringRewriter, dtype: int) -> None:
    """Write Min(Max(x, min), max) in place of the node, in the form of Max-12 or Max-8 as the type asks for."""
    value = rw.input(0)
    is_float = dtype not in INTEGERS
    limits = np.finfo(onnx.helper.tensor_dtype_to_np_dtype(dtype)) if is_float else None
    for index, operator in ((1, "Max"), (2, "Min")):
        bound = rw.input(index)
        if not bound:
            if limits is None:
                continue
            bound = rw.constant(np.array(limits.min if index == 1 else limits.max, limits.dtype), "limit")
        value = (
            rw.before(operator, [value, bound]) if is_float else extreme(rw, operator, [value, bound], dtype)
        )
    rw.rename("Identity")
    del rw.node.input[1:]
    rw.set_input(0, value)


@lowering("Max", "Min", leaves=12, types=LostTypes.OWN)
def max_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Max and Min take floats alone.

    What changes: integers of 8 and 16 bits are cast to float32, those of 32 bits to double. Those of 64 bits are compared with
    Less, and selected, pair by pair.

    Why equal: the Casts are exact. Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    dtype = rw.need_dtype(rw.input(0))
    if dtype not in INTEGERS:
        return
    result = extreme(rw, node.op_type, list(node.input), dtype)
    rw.rename("Identity")
    del node.input[1:]
    rw.set_input(0, result)


def extreme(rw: LoweringRewriter, operator: str, values: list[str], dtype: int) -> str:
    """Return the Max or Min of integers, written without the integers of Max-12."""
    if len(values) == 1:
        return values[0]
    if dtype not in _WIDE and rw.target >= 8:
        wide = _T.FLOAT if dtype in _SMALL else _T.DOUBLE
        result = rw.before(operator, [cast(rw, value, wide) for value in values])
        return cast(rw, result, dtype)
    found = values[0]
    for value in values[1:]:
        pair = [found, value] if operator == "Max" else [value, found]
        found = select(rw, rw.before("Less", pair), value, found)
    return found
