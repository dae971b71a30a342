"""The ten Reduce operators, whose `axes` are an attribute below opset 18 (ReduceSum: 13), ArgMax and ArgMin."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

_INTEGERS = tuple(
    TensorProto.DataType.Value(f"{sign}INT{bits}") for sign in ("", "U") for bits in (8, 16, 32, 64)
)


@lowering(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSumSquare", leaves=18, types=LostTypes.ROUNDED,
)  # fmt: skip
@lowering("ReduceSum", leaves=13, types=LostTypes.ROUNDED)
def reduce_axes_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`axes` moves from an input to an attribute.

    What changes: constant axes become the attribute; omitted or empty ones mean all axes before and after. With
    noop_with_empty_axes=1 and no axes, nothing is reduced: what remains of the operator is written, which is the
    absolute value for ReduceL1, the root of the square for ReduceL2, the square for ReduceSumSquare, the logarithm for
    ReduceLogSum, and a copy for all others.

    Why equal: version 13 (ReduceSum: 11) computes the same for the same axes, and ONNX Runtime does so with one kernel.
    With no axes to reduce, ONNX Runtime computes the named function of each element; its Log differs from the logarithm
    of ReduceLogSum by one unit in the last place.

    Limits: the axes must be constants of the model.
    """
    axes = rw.need_constant(1, "axes").reshape(-1) if rw.input(1) else ()
    rw.set_input(1, "")
    if len(axes):
        rw.drop("noop_with_empty_axes")
        rw.set("axes", [int(axis) for axis in axes])
    elif noop := rw.pop("noop_with_empty_axes", 0):
        if noop != 1:
            rw.refuse(f"has noop_with_empty_axes={noop}, which is neither 0 nor 1", code="no-such-value")
        rw.drop("keepdims")
        _reduce_nothing(node, rw)


def _reduce_nothing(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Make the node what a reduction over no axes is."""
    import numpy as np

    source = rw.input(0)
    exactness = None
    if node.op_type == "ReduceSumSquare":
        rw.rename("Mul")
        rw.set_input(1, source)
    elif node.op_type == "ReduceL2" and rw.need_dtype(source) in (TensorProto.FLOAT, TensorProto.DOUBLE):
        node.input[0] = rw.before("Mul", [source, source], hint="square")
        rw.rename("Sqrt")
    elif node.op_type == "ReduceLogSumExp" and (dtype := rw.numpy_type(source)).kind == "f":
        rw.rename(
            "Add"
        )  # of the zero that is the logarithm of 1, which makes a positive zero of a negative one
        rw.set_input(1, rw.constant(np.zeros((), dtype), "zero"))
    elif node.op_type in ("ReduceL1", "ReduceL2"):
        rw.rename("Abs")
    elif node.op_type == "ReduceLogSum":
        if rw.need_dtype(source) in _INTEGERS:
            rw.cast_around([0], [0], TensorProto.DOUBLE, rw.need_dtype(source))
        rw.rename("Log")
        exactness = Exactness.EQUIVALENT
    else:
        rw.rename("Identity")
    rw.note("nothing is reduced, since there are no axes and noop_with_empty_axes is 1", exactness)


@lowering("ArgMax", "ArgMin", leaves=12)
def select_last_index_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`select_last_index` goes away: the last index is counted from the end of the reversed axis.

    What changes: 0, the default, is dropped. With 1, the axis is reversed by a Slice, and the index i of the first
    extreme value there becomes n - 1 - i.

    Why equal: the last of equal values is the first one of the reversed axis.

    Limits: where floats have NaNs, the standard does not say which index is returned, and ONNX Runtime returns another.
    """
    if not rw.pop("select_last_index", 0):
        return
    import numpy as np

    axis = int(rw.get("axis", 0))
    source = rw.input(0)
    last, first, step = (
        rw.constant(np.array([value]), hint)
        for value, hint in ((-1, "last"), (np.iinfo(np.int64).min, "first"), (-1, "step"))
    )
    at = rw.constant(np.array([axis]), "axis")
    node.input[0] = rw.before("Slice", [source, last, first, at, step], hint="reversed")
    shape = rw.before("Shape", [source], hint="shape")
    length = rw.before("Gather", [shape, rw.constant(np.array(axis), "axis")], hint="length")
    end = rw.before("Sub", [length, rw.constant(np.array(1), "one")], hint="end")
    name = rw.output(0)
    rw.after("Sub", [end, rw.detach_output(0, "from_end")], [name])
    exact = rw.dtype(source) in _INTEGERS
    rw.note(
        "the first index of the reversed axis is counted from the end"
        + ("" if exact else ", if there are no NaNs"),
        None if exact else Exactness.ASSUMED,
    )
