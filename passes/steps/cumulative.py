"""CumSum and CumProd become a Scan along the axis."""

from __future__ import annotations

import math

import numpy as np
from onnx import numpy_helper

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, TensorProto, Value, formula
from onnx_migrate.facts.value_types import ValueType

_T = TensorProto

_LARGEST_STATE = 4096
"""The most elements of a first state that becomes a constant, if the shape is known."""

_END = int(np.iinfo(np.int64).max)


@formula("CumSum", since=11)
def cum_sum(op: Op, x: Value, axis: Value, *, exclusive: int, reverse: int) -> Value:
    """CumSum begins with opset 11, so a Scan adds along the axis.

    What changes: the state of the Scan is the sum so far. If the axis is computed at run time or the rank is unknown, the
    input is reshaped to three axes. The Scan then runs along the second one. The sum begins with -0, which keeps the sign of
    a zero. With `exclusive` it begins with 0, because that is then the first result.

    Why equal: the text defines these sums. ONNX Runtime adds in the same order, so the results are equal bit for bit.

    Limits: a tensor that is empty at run time fails in ONNX Runtime, unless its shape says so.
    """
    first = -0.0 if x.is_float and not exclusive else 0
    return _scanned(op, "Add", x, axis, first, exclusive=exclusive, reverse=reverse)


@formula("CumProd", since=26)
def cum_prod(op: Op, x: Value, axis: Value, *, exclusive: int, reverse: int) -> Value:
    """CumProd begins with opset 26, so a Scan multiplies along the axis.

    What changes: the node becomes a Scan as for CumSum. Its state is the product so far, and begins with 1. bfloat16 is
    multiplied in float32 between Casts.

    Why equal: the text defines these products, and 1 times the first element is that element.

    Limits: a tensor that is empty at run time fails in ONNX Runtime, unless its shape says so.
    """
    return _scanned(op, "Mul", x, axis, 1, exclusive=exclusive, reverse=reverse)


def _scanned(
    op: Op, operator: str, x: Value, axis: Value, first: float, *, exclusive: int, reverse: int
) -> Value:
    dtype = kind = x.need_dtype()
    if 0 in (x.shape or ()):
        return x  # the result is empty too
    array, rank = axis.constant, x.rank
    folded = array is None or not rank
    if array is None or not rank:
        source, along, rank = _three_axes(op, x, axis), 1, 3
    else:
        source, along = x, int(array.reshape(-1)[0]) % rank
    if dtype == _T.BFLOAT16:
        kind = _T.FLOAT
        op.note("bfloat16 is multiplied in float32 between Casts", EQUIVALENT)
    shape, source = source.shape, source.cast(kind)

    def step(state: Value, element: Value) -> tuple[Value, Value]:
        following = op.write(operator, state, element)
        return following, op.Identity(state if exclusive else following)

    result = op.several(
        "Scan", 2, _state(op, source, along, first), source,
        body=op.body("accumulate", step, (kind, rank - 1), (kind, rank - 1)), num_scan_inputs=1,
        scan_input_axes=[along], scan_input_directions=[reverse],
        scan_output_axes=[along], scan_output_directions=[reverse],
    )[1]  # fmt: skip
    op.rw.scope.record_type(result.name, ValueType(kind, shape))
    result = result.cast(dtype)
    return op.Reshape(result, op.Shape(x)) if folded else result


def _three_axes(op: Op, x: Value, axis: Value) -> Value:
    """Return a value with three axes: those before `axis` flattened, `axis`, and those behind it flattened."""
    shape = op.Shape(x)
    rank = op.size_of(shape, 0)
    index = axis.cast(_T.INT64).reshape(1)
    index = index + op.Less(index, [0]).cast(_T.INT64) * rank
    positions, unit = op.iota(rank), op.constant([1])
    sizes = [
        op.ReduceProd(op.select(chosen(positions, index), shape, unit), [0])
        for chosen in (op.Less, op.Equal, op.Greater)
    ]
    three = op.Reshape(x, op.Concat(*sizes, axis=0))
    op.rw.scope.record_type(three.name, ValueType(x.need_dtype(), (None, None, None)))
    return three


def _state(op: Op, x: Value, axis: int, number: float) -> Value:
    """Return a tensor of one repeated number, in the shape of x without the axis."""
    shape = x.shape
    if shape is not None:
        rest = [size for at, size in enumerate(shape) if at != axis and size is not None]
        if len(rest) == len(shape) - 1 and math.prod(rest) <= _LARGEST_STATE:
            return op.constant(np.full(rest, number), x)
    sizes = op.Shape(x)
    behind = op.Slice(sizes, [axis + 1], [_END], [0])
    rest_shape = op.Concat(op.Slice(sizes, [0], [axis], [0]), behind, axis=0) if axis else behind
    filled = np.full((1,), number, x.numpy_type)
    return op.ConstantOfShape(rest_shape, value=numpy_helper.from_array(filled))
