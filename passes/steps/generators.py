"""Operators that make values from indices: Range, Trilu and EyeLike; also OneHot's types, and Bernoulli."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import helper

from onnx_migrate.engine.steps.formula import (
    EQUIVALENT,
    FLOATS,
    HALVES,
    LostTypes,
    Op,
    TensorProto,
    Value,
    formula,
)
from onnx_migrate.facts.value_types import ValueType
from onnx_migrate.plugins import compatible

_T = TensorProto

_LARGEST_MASK = 1 << 20
"""The most elements of a mask that becomes a constant. Larger masks are computed from indices."""

_LONGEST_RANGE = 4096
"""The most elements of a Range that becomes a constant."""

compatible(
    "OneHot", 11,
    reason="negative indices are allowed and count from the end, as ONNX Runtime already computed them",
)  # fmt: skip
compatible("Range", 27, reason="half floats are allowed, with stash_type for the precision of their sums")


@formula("Range", since=27, types=LostTypes.OWN)
def range_27_down(op: Op, start: Value, limit: Value, delta: Value, *, stash_type: int) -> Value:
    """Below opset 27 Range does not support half floats, so they are counted in float32 between Casts.

    What changes: the inputs are cast to float32 and the output back. `stash_type` applies only to half floats and is dropped.

    Why equal: the text defines the computation for stash_type 1 so.

    Limits: onnx-migrate refuses half floats with a `stash_type` other than 1.
    """
    dtype = start.need_dtype()
    if dtype not in HALVES:
        return op.itself(start, limit, delta, stash_type=None)
    if stash_type != 1:
        op.refuse(
            f"attribute stash_type is {stash_type}, and only 1, float32, has a form below opset 27",
            code="no-equal",
        )
    wide = [value.cast(_T.FLOAT) for value in (start, limit, delta)]
    return op.itself(*wide, stash_type=None).cast(dtype)


@formula("Range", since=11)
def range_11_down(op: Op, start: Value, limit: Value, delta: Value) -> Value:
    """Range begins with opset 11, so a constant, a formula or a Loop replaces it.

    What changes: constant inputs give a constant of up to 4096 elements. For integers, start + i * delta is computed from the
    indices i. Their number is an integer division, rounded up. For floats, a Loop adds delta to start.

    Why equal: for integers the text gives this formula. For floats the text multiplies, but its function body and ONNX
    Runtime add. The Loop gives the same bits as ONNX Runtime, which counts in double.
    """
    dtype = start.need_dtype()
    arrays = [value.constant for value in (start, limit, delta)]
    if all(array is not None and array.size == 1 for array in arrays):
        values = _counted(*(array.reshape(-1)[0] for array in arrays if array is not None))
        if values is not None:
            return op.constant(values)
    if dtype in FLOATS:
        return _added(op, dtype, *(value.reshape() for value in (start, limit, delta)))
    start, limit, delta = (value.cast(_T.INT64) for value in (start, limit, delta))
    count = limit - start
    if arrays[2] is None or int(arrays[2].reshape(-1)[0]) != 1:
        forward = (delta > 0).cast(_T.INT64)
        toward = forward + forward - 1
        count = (count + (delta - toward)) / delta
    count = (count * (count > 0).cast(_T.INT64)).reshape(1)
    steps = op.iota(count) * delta
    return (start + steps).cast(dtype)


def _counted(start: Any, limit: Any, delta: Any) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a Range, added up as in ONNX Runtime, or None if there are too many."""
    if delta == 0 or not np.all(np.isfinite([start, limit, delta])):
        return None
    with np.errstate(all="ignore"):
        if start.dtype.kind == "f":
            count = math.ceil((float(limit) - float(start)) / float(delta))
        else:
            count = -((int(start) - int(limit)) // int(delta))
        if count > _LONGEST_RANGE:
            return None
        values = np.empty(max(count, 0), start.dtype)
        for index in range(len(values)):
            values[index] = start
            start = start + delta
    return values


def _added(op: Op, dtype: int, start: Value, limit: Value, delta: Value) -> Value:
    """Write a Loop that adds delta to start and stacks the value before each addition."""
    first, last, step = (value.cast(_T.DOUBLE) for value in (start, limit, delta))
    count = op.Ceil((last - first) / step).cast(_T.INT64)
    body = op.body(
        "add_up", lambda _, go, total: (go, total + delta, total), (_T.INT64, 0), (_T.BOOL, 0), (dtype, 0)
    )
    values = op.several("Loop", 2, count, np.array(True), start, body=body)[1]
    op.rw.scope.record_type(values.name, ValueType(dtype, (None,)))
    return values


@formula("Trilu", since=14)
def trilu(op: Op, x: Value, k: Value | None, *, upper: int) -> Value:
    """Trilu begins with opset 14, so a selection returns 0 outside of the triangle.

    Why equal: the text defines it so. The elements of the triangle are moved, not multiplied. ONNX Runtime computes the same
    bits.
    """
    offset = np.array(0, np.int64) if k is None else k.constant
    sizes = None if x.shape is None else [size for size in x.shape[-2:] if size is not None]
    if offset is not None and sizes and len(sizes) == 2 and math.prod(sizes) <= _LARGEST_MASK:
        rows, columns = (np.arange(size) for size in sizes)
        distance, diagonal = columns[None, :] - rows[:, None], offset.reshape(-1)[0]
        outside = op.constant(distance < diagonal if upper else distance > diagonal)
    else:
        row = op.Unsqueeze(op.iota(op.size_of(x, -2)), [1])
        column = op.Unsqueeze(op.iota(op.size_of(x, -1)), [0])
        least = 0 if k is None else k
        outside = column - row < least if upper else column - row > least
    return op.select(outside, 0, x)


@formula("EyeLike", since=9)
def eye_like(op: Op, x: Value, *, dtype: int | None, k: int) -> Value:
    """EyeLike begins with opset 9, so a comparison puts ones where the column is the row plus `k`.

    Why equal: the text defines the result so.
    """
    kind = x.need_dtype() if dtype is None else dtype
    if x.static is not None and math.prod(x.static) <= _LARGEST_MASK:
        rows, columns = x.static
        eye = np.eye(rows, columns, k, dtype=np.int64)
        return op.constant(eye.astype(helper.tensor_dtype_to_np_dtype(kind)))
    diagonal = op.Unsqueeze(op.iota(op.size_of(x, 0)), [1])
    if k:
        diagonal = diagonal + np.array([k])
    column = op.Unsqueeze(op.iota(op.size_of(x, 1)), [0])
    return op.Cast(diagonal == column, to=kind)


@formula("Bernoulli", since=15, exactness=EQUIVALENT)
def bernoulli(op: Op, x: Value, *, dtype: int | None, seed: float | None) -> Value:
    """Bernoulli begins with opset 15, so uniform random numbers are compared with the probability.

    Why equal: this is the function body of Bernoulli. The distribution is the same, but the drawn numbers differ.
    """
    drawn = op.RandomUniformLike(x, low=0.0, high=1.0, seed=seed)
    return op.Cast(drawn < x, to=x.need_dtype() if dtype is None else dtype)
