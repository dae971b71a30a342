"""The ten Reduce operators, whose `axes` are an input from opset 18 on (ReduceSum: 13), ArgMax and ArgMin, global pools."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.advice import FIX_DIMS
from onnx_migrate.engine.steps.formula import EQUIVALENT, INTEGERS, LostTypes, Op, Value, formula
from onnx_migrate.plugins import Exactness, Rewriter, adapter, compatible

_REDUCTIONS = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare"
)

compatible(_REDUCTIONS, 13, reason="more types are allowed")
compatible("ReduceMax ReduceMin", 12, 20, reason="more types are allowed")
compatible("ArgMax ArgMin", 11, reason="negative axes are allowed")
compatible(
    "ArgMax ArgMin",
    12,
    reason="select_last_index was added; by default the first index is returned, as before",
)
compatible("ArgMax ArgMin", 13, reason="more types are allowed")


# Upward


@adapter("ReduceSum", _REDUCTIONS, to=11)
def reduce_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Negative axes are allowed. `axes` of a scalar, which has no axes, are removed.

    Why equal: ONNX Runtime reduces a scalar at opset 10 whatever its axes are. From opset 11 on it refuses axes that the input
    does not have, if onnx infers its shape. Omitted axes mean all.
    """
    axes = rw.attribute("axes")
    if axes is not None and not axes.ref_attr_name and rw.rank(node.input[0]) == 0:
        rw.drop("axes")
        rw.note("its axes are removed, since its input is a scalar, which has none")


@adapter("ReduceSum", to=13)
@adapter(_REDUCTIONS, to=18)
def reduce_axes(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axes` moves from an attribute to an input.

    Why equal: omitted or empty axes mean all axes before and after; the new attribute `noop_with_empty_axes` has that
    as its default.
    """
    rw.attribute_to_input("axes", 1)


@adapter("ReduceLogSum", "ReduceLogSumExp", to=28)
def reduce_log_28(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Integers are cast to double and the result back, since from opset 28 on they are not allowed.

    What changes: a node on integers gets a Cast before and after it; one on floats is unchanged.

    Limits: a sum that overflowed its integer type does not overflow in double: equivalent, not exact.
    """
    dtype = rw.need_dtype(node.input[0])
    if dtype not in (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64):
        return
    node.input[0] = rw.before("Cast", [node.input[0]], hint="double", to=TensorProto.DOUBLE)
    name = node.output[0]
    rw.after("Cast", [rw.detach_output(0)], [name], to=dtype)
    rw.note(
        "integers are cast to double and the result back, since integers are not allowed",
        Exactness.EQUIVALENT,
    )


# Downward


@formula(_REDUCTIONS, since=18, types=LostTypes.ROUNDED)
@formula("ReduceSum", since=13, types=LostTypes.ROUNDED)
def reduce_axes_down(op: Op, x: Value, axes: Value | None, *, noop_with_empty_axes: int) -> Value:
    """`axes` moves from an input to an attribute.

    What changes: constant axes become the attribute; omitted or empty ones mean all axes before and after. With
    noop_with_empty_axes=1 and no axes, the node reduces nothing and only computes the function of each element. That is the
    absolute value for ReduceL1, the root of the square for ReduceL2, and the square for ReduceSumSquare. For ReduceLogSum it is
    the logarithm, and for all others a copy.

    Why equal: version 13 (ReduceSum: 11) computes the same for the same axes, and ONNX Runtime does so with one kernel. With no
    axes to reduce, ONNX Runtime computes the named function of each element. Its Log differs from the logarithm of ReduceLogSum
    by one unit in the last place.

    Limits: the axes must be constants of the model.
    """
    chosen = [] if axes is None else axes.need_constant("axes").reshape(-1).tolist()
    if chosen or not noop_with_empty_axes:
        return op.itself(x, noop_with_empty_axes=None, axes=chosen or None)
    if noop_with_empty_axes != 1:
        op.refuse(
            f"has noop_with_empty_axes={noop_with_empty_axes}, which is neither 0 nor 1",
            code="no-such-value",
        )
    inexact = Exactness.EQUIVALENT if op.operator == "ReduceLogSum" else None
    op.note("nothing is reduced, since there are no axes and noop_with_empty_axes is 1", inexact)
    return _nothing_reduced(op, x)


def _nothing_reduced(op: Op, x: Value) -> Value:
    """Return the result of a reduction over no axes."""
    if op.operator == "ReduceSumSquare":
        return x * x
    if op.operator == "ReduceL2" and x.need_dtype() in (TensorProto.FLOAT, TensorProto.DOUBLE):
        return op.Sqrt(x * x)
    if op.operator in ("ReduceL1", "ReduceL2"):
        return abs(x)
    if op.operator == "ReduceLogSum":
        whole = x.need_dtype() in INTEGERS
        return op.Log(x.cast(TensorProto.DOUBLE)).cast(x.need_dtype()) if whole else op.Log(x)
    if op.operator == "ReduceLogSumExp" and x.numpy_type.kind == "f":
        return x + 0  # the logarithm of 1, which makes a positive zero of a negative one
    return x


@formula("ArgMax", "ArgMin", since=12)
def select_last_index(op: Op, x: Value, *, axis: int, select_last_index: int) -> Value:
    """`select_last_index` goes away: the last index is counted from the end of the reversed axis.

    What changes: 0, the default, is dropped. With 1, the axis is reversed by a Slice, and the index i of the first extreme
    value there becomes n - 1 - i.

    Why equal: the last of equal values is the first one of the reversed axis.

    Limits: for floats with NaNs, the standard does not say which index the node returns, and ONNX Runtime returns another one.
    """
    attributes = op.attributes
    attributes.pop("select_last_index", None)
    if not select_last_index:
        return op.write(op.operator, x, **attributes)
    backwards = op.write("Slice", x, [-1], [np.iinfo(np.int64).min], [axis], [-1])
    end = op.Gather(op.Shape(x), axis) - 1
    exact = x.dtype in INTEGERS
    op.note(
        "the first index of the reversed axis is counted from the end"
        + ("" if exact else ", if there are no NaNs"),
        None if exact else Exactness.ASSUMED,
    )
    return end - op.write(op.operator, backwards, **attributes)


# For targets that lack them


def _axes(op: Op, axes: Value | None) -> Sequence[int] | Value | None:
    """Return the axes of a Reduce node: numbers, a value that is computed, None for all axes.

    Refuses with `no-equal` a node that reduces nothing (`noop_with_empty_axes`), or may, depending on its axes.
    """
    chosen: list[int] | Value | None = op.rw.get("axes")
    if chosen is None and axes is not None:
        array = axes.constant
        chosen = axes if array is None else [int(axis) for axis in array.reshape(-1)]
    if op.rw.get("noop_with_empty_axes", 0) and (isinstance(chosen, Value) or not chosen):
        op.refuse("noop_with_empty_axes is set, and its axes are not known to be some", code="no-equal")
    return chosen if isinstance(chosen, Value) else chosen or None


def _sum(op: Op, value: Value, axes: Value | None, keepdims: int) -> Value:
    return op.ReduceSum(value, _axes(op, axes), keepdims=bool(keepdims))


@formula("ReduceL1", since=1, exactness=EQUIVALENT)
def reduce_l1(op: Op, x: Value, axes: Value | None, *, keepdims: int) -> Value:
    """It is the sum of the absolute values.

    Why equal: the text. Runtimes may add in another order.
    """
    return _sum(op, abs(x), axes, keepdims)


@formula("ReduceSumSquare", since=1, exactness=EQUIVALENT)
def reduce_sum_square(op: Op, x: Value, axes: Value | None, *, keepdims: int) -> Value:
    """It is the sum of the squares.

    Why equal: the text. Runtimes may add in another order.
    """
    return _sum(op, x * x, axes, keepdims)


@formula("ReduceL2", since=1, exactness=EQUIVALENT)
def reduce_l2(op: Op, x: Value, axes: Value | None, *, keepdims: int) -> Value:
    """It is the root of the sum of the squares.

    Why equal: the text. Runtimes may add in another order.
    """
    return op.Sqrt(_sum(op, x * x, axes, keepdims))


@formula("ReduceLogSum", since=1, exactness=EQUIVALENT)
def reduce_log_sum(op: Op, x: Value, axes: Value | None, *, keepdims: int) -> Value:
    """It is the logarithm of the sum.

    Why equal: the text. Runtimes may add in another order.
    """
    return op.Log(_sum(op, x, axes, keepdims))


@formula("ReduceLogSumExp", since=1, exactness=EQUIVALENT)
def reduce_log_sum_exp(op: Op, x: Value, axes: Value | None, *, keepdims: int) -> Value:
    """It is the logarithm of the sum of the exponentials, after the maximum is subtracted, so that nothing overflows.

    Why equal: log(sum(exp(X))) = M + log(sum(exp(X - M))), as ONNX Runtime computes it. The largest difference
    measured is 2.4e-7.

    Limits: the axes must be known, and the rank if all axes are reduced and dropped.
    """
    over = _axes(op, axes)
    if isinstance(over, Value):
        op.refuse(f"its axes ({over.name!r}) must be a constant", code="needs-constant")
    top = op.ReduceMax(x, over)
    whole = op.Log(op.ReduceSum(op.Exp(x - top), over)) + top
    if keepdims:
        return whole
    rank = x.need_rank() if over is None or min(over) < 0 else 0
    dropped = range(rank) if over is None else (axis % rank if axis < 0 else axis for axis in over)
    return op.Squeeze(whole, sorted(dropped))


@formula("ReduceMean", since=1, exactness=EQUIVALENT)
def reduce_mean(op: Op, x: Value, axes: Value | None, *, keepdims: int) -> Value:
    """It is the sum, divided by the number of elements.

    Why equal: the text. Runtimes may add in another order.

    Limits: the axes and their sizes must be known. onnx-migrate refuses integers, since runtimes round them differently.
    """
    over, shape = _axes(op, axes), x.shape
    if shape is None or isinstance(over, Value):
        op.refuse(f"the sizes of the axes of {x.name!r} must be known", code="needs-shape")
    sizes = [shape[axis] for axis in (range(len(shape)) if over is None else over)]
    if None in sizes:
        op.refuse(
            f"the sizes of the axes of {x.name!r} must be fixed",
            code="needs-shape",
            hint=FIX_DIMS,
        )
    if x.numpy_type.kind in "iu":
        op.refuse("the mean of integers has no equal", code="no-equal")
    total = _sum(op, x, axes, keepdims)
    return total / np.float32(math.prod(size or 0 for size in sizes))


@formula("GlobalAveragePool", since=1, exactness=EQUIVALENT)
def global_average_pool(op: Op, x: Value) -> Value:
    """It is the mean over the axes after the channels.

    Why equal: the text. Runtimes may add in another order.
    """
    return op.ReduceMean(x, _spatial(x))


@formula("GlobalMaxPool", since=1)
def global_max_pool(op: Op, x: Value) -> Value:
    """It is the maximum over the axes after the channels.

    Why equal: the text.
    """
    return op.ReduceMax(x, _spatial(x))


@formula("GlobalLpPool", since=1, exactness=EQUIVALENT)
def global_lp_pool(op: Op, x: Value, *, p: int) -> Value:
    """It is the p-norm over the axes after the channels.

    Why equal: the text. Runtimes may add in another order.
    """
    axes = _spatial(x)
    if p in (1, 2):
        return (op.ReduceL1 if p == 1 else op.ReduceL2)(x, axes)
    return op.ReduceSum(abs(x) ** np.float32(p), axes) ** np.float32(1 / p)


@formula("LpNormalization", since=1, exactness=EQUIVALENT)
def lp_normalization(op: Op, x: Value, *, axis: int, p: int) -> Value:
    """The data is divided by its norm along an axis. If the norm is 0, all of the data is 0 and stays 0.

    Why equal: the text, and ONNX Runtime's kernel for the norm of 0. The largest difference measured is 1.2e-7.
    """
    if axis < 0 and (op.version < 11 or x.rank is not None):
        axis += x.need_rank()
    norm = (op.ReduceL1 if p == 1 else op.ReduceL2)(x, [axis])
    return x / (norm + (~norm.cast(TensorProto.BOOL)).cast(x.need_dtype()))


def _spatial(x: Value) -> list[int]:
    """Return the axes after batch and channels, or refuse with `needs-rank`."""
    return list(range(2, x.need_rank()))
