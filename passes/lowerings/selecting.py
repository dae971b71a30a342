"""Selects elements of two values by a condition, bit for bit, with and without Where."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import FLOATS, INTEGERS, cast, integers, iota, reduce, scalar, shape_of, squeeze

__all__ = ["select", "select_without_where"]

_T = TensorProto

_WHERE_KERNELS = frozenset((_T.UINT8, _T.INT8, _T.INT32, _T.UINT32, _T.INT64))
"""The integers for which ONNX Runtime has a kernel of Where."""

_LARGEST = 4096
"""Elements of a constant up to which it is searched for a -0."""


def select(rw: LoweringRewriter, condition: str, then: str, other: str) -> str:
    """Return elements of `then` where the condition holds, of `other` elsewhere; the three are broadcast. Bit for bit.

    ONNX Runtime's Where gives +0 for a -0 of its first branch. So of floats the branch that may hold a -0 stands in the
    second one; where both may, `Where(c, 1, other) * Where(not c, 1, then)` is written, since a product with 1 is
    exact. Types for which ONNX Runtime has no kernel: bool takes And and Or, integers are cast to int64 and back.
    Refuses with `needs-type` where the element type is unknown.
    """
    dtype = rw.need_dtype(then)
    if rw.version < 9 or dtype == _T.BOOL:
        return select_without_where(rw, condition, then, other)
    if dtype in INTEGERS and dtype not in _WHERE_KERNELS:
        wide = rw.before(
            "Where", [condition, cast(rw, then, _T.INT64), cast(rw, other, _T.INT64)], hint="selected"
        )
        return cast(rw, wide, dtype, hint="selected")
    if dtype not in FLOATS or not _may_be_negative_zero(rw, then):
        return rw.before("Where", [condition, then, other], hint="selected")
    opposite = rw.before("Not", [condition], hint="opposite")
    if not _may_be_negative_zero(rw, other):
        return rw.before("Where", [opposite, other, then], hint="selected")
    one = scalar(rw, 1, then)
    others = rw.before("Where", [condition, one, other], hint="selected")
    return rw.before(
        "Mul", [others, rw.before("Where", [opposite, one, then], hint="selected")], hint="selected"
    )


def _may_be_negative_zero(rw: LoweringRewriter, value: str) -> bool:
    shape = rw.shape(value)
    if shape is None or any(size is None for size in shape):
        return True
    if math.prod(size or 0 for size in shape) > _LARGEST:
        return True
    array = rw.constant_value(value)
    return array is None or bool(np.any((array == 0) & np.signbit(array)))


def select_without_where(rw: LoweringRewriter, condition: str, then: str, other: str) -> str:
    """Return what `select` returns, without Where, which begins with opset 9. Bit for bit.

    bool: And and Or. Integers: products with 1 and 0, which wrap around as they should. Others, in which 0 times an
    infinity is no 0: a Gather from both, laid one behind the other, at the place of the element in the one that the
    condition chooses.
    """
    dtype = rw.need_dtype(then)
    if dtype == _T.BOOL:
        opposite = rw.before("Not", [condition], hint="opposite")
        kept = [rw.before("And", pair) for pair in ([condition, then], [opposite, other])]
        return rw.before("Or", kept, hint="selected")
    if dtype in INTEGERS:
        wide = _T.INT32 if dtype not in (_T.INT64, _T.UINT64, _T.UINT32) else _T.INT64
        chosen = rw.before("Cast", [condition], hint="chosen", to=wide)
        rest = rw.before("Sub", [scalar(rw, 1, chosen), chosen], hint="rest")
        parts = [
            rw.before("Mul", [factor, cast(rw, value, wide)])
            for factor, value in ((chosen, then), (rest, other))
        ]
        return cast(rw, rw.before("Add", parts, hint="selected"), dtype, hint="selected")
    return _gather(rw, condition, then, other)


def _gather(rw: LoweringRewriter, condition: str, then: str, other: str) -> str:
    shape, truth = _common_shape(rw, condition, then, other)
    static = rw.known(shape)
    if static is not None and 0 in static:
        return rw.constant(np.zeros(tuple(static), rw.numpy_type(then)), "empty")
    flat = [
        rw.before("Reshape", [_spread(rw, value, shape, truth), integers(rw, -1)]) for value in (other, then)
    ]
    both = rw.before("Concat", flat, hint="both", axis=0)
    known = None if static is None else math.prod(int(size) for size in static)
    count = reduce(rw, "ReduceProd", shape, [0]) if known is None else integers(rw, known)
    places = rw.before("Reshape", [iota(rw, count), shape], hint="places")
    # A scalar: an axis of 1 would be added to a scalar condition.
    number = squeeze(rw, count, [0]) if known is None else rw.constant(np.array(known, np.int64), "count")
    chosen = rw.before("Mul", [rw.before("Cast", [condition], to=_T.INT64), number], hint="chosen")
    return rw.before("Gather", [both, rw.before("Add", [places, chosen])], hint="selected", axis=0)


def _common_shape(rw: LoweringRewriter, condition: str, then: str, other: str) -> tuple[str, str]:
    """Return the shape to which the three are broadcast, as an int64 value; and a bool value of that shape, "" if it is known."""
    shapes = [rw.shape(value) for value in (condition, then, other)]
    if all(shape is not None and None not in shape for shape in shapes):
        known = np.broadcast_shapes(*(tuple(size or 0 for size in shape or ()) for shape in shapes))
        return integers(rw, *known), ""
    if rw.dtype(then) not in FLOATS:
        for value in (condition, then, other):
            rw.need_static(value)
    truth = condition
    for value in (then, other):
        truth = rw.before("Or", [truth, rw.before("Less", [value, value])])
    return shape_of(rw, truth), truth


def _spread(rw: LoweringRewriter, value: str, shape: str, truth: str) -> str:
    """Broadcast a value to a shape."""
    known, own = rw.known(shape), rw.shape(value)
    if known is not None and own == tuple(known.tolist()):
        return value
    if rw.target >= 8 or not truth:
        return rw.before("Expand", [value, shape])
    ones = rw.before("Cast", [rw.before("Or", [truth, rw.before("Not", [truth])])], to=rw.need_dtype(value))
    return rw.before("Mul", [value, ones], hint="spread")
