"""Negative axes, which begin with opset 11; Squeeze and Unsqueeze, whose axes became an input with opset 13."""

from __future__ import annotations

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.formula import LostTypes, Op, Value, formula
from onnx_migrate.plugins import Exactness, LoweringRewriter, Rewriter, adapter, compatible, lowering

_ASSUMED = "runtimes are assumed to take a negative axis below opset 11, since the rank is unknown"


@lowering("ArgMax ArgMin Compress Concat Flatten Hardmax LogSoftmax Softmax Split", leaves=11)
def axis_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A negative `axis` is replaced by the same axis counted from the front.

    Why equal: the changelog of version 11 adds negative axes and nothing else.

    Limits: if the rank is unknown, a negative axis stays, and the report says so. At opset 10 ONNX Runtime accepts it in all
    of these operators except Flatten. For Flatten onnx-migrate requires the rank.
    """
    axis = rw.get("axis")
    if axis is None or axis >= 0:
        return
    source = rw.input(0)
    rank = rw.need_rank(source) if node.op_type == "Flatten" else rw.rank(source)
    if rank is None:
        rw.note(_ASSUMED, Exactness.ASSUMED)
        return
    rw.set("axis", axis + rank)


@lowering(
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
    "ReduceSumSquare Squeeze Unsqueeze",
    leaves=11,
)
def axes_11_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Negative `axes` are replaced by the same axes counted from the front, in ascending order.

    What changes: onnx-migrate adds the rank to negative axes and sorts the axes.

    Why equal: the changelog of version 11 adds negative axes and nothing else. The order of axes has no meaning. However,
    runtimes include older releases of onnx, whose shape inference of Squeeze-1 is correct only for ascending axes.

    Limits: if the rank is unknown, negative axes stay, and the report says so. ONNX Runtime accepts them at opset 10.
    """
    axes = rw.get("axes")
    if axes is None:
        return
    if all(axis >= 0 for axis in axes):
        if axes != sorted(axes):
            rw.set("axes", sorted(axes))
        return
    rank = rw.rank(rw.input(0))
    if rank is None:
        rw.note(_ASSUMED, Exactness.ASSUMED)
        return
    if node.op_type == "Unsqueeze":
        # The axes of an Unsqueeze count those of its output.
        rank += len(axes)
    rw.set("axes", sorted(axis + rank if axis < 0 else axis for axis in axes))


compatible("Squeeze Unsqueeze", 11, reason="negative axes are allowed")


@adapter("Squeeze", "Unsqueeze", to=13)
def axes_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axes` moves from an attribute to an input.

    What changes: an empty list of a Squeeze becomes an omitted input. Both mean every axis of length 1.
    """
    axes = rw.attribute("axes")
    if node.op_type == "Squeeze" and axes is not None and not axes.ref_attr_name and not axes.ints:
        rw.drop("axes")
    rw.attribute_to_input("axes", 1)


@formula("Squeeze", "Unsqueeze", since=13, types=LostTypes.EXACT)
def axes_13_down(op: Op, x: Value, axes: Value | None) -> Value:
    """`axes` moves from an input to an attribute.

    What changes: constant axes become the attribute. Without axes, or with an empty list, Squeeze removes every axis of
    length 1 in both versions. For axes computed at run time, the node becomes a Reshape to a computed shape.

    Why equal: the changelog of version 13 moves the attribute and changes nothing else. ONNX Runtime reads an empty list as
    an omitted one.

    Limits: a Reshape copies the input's length for each 0 in a computed shape. So for axes computed at run time, onnx-migrate
    assumes that no tensor is empty.
    """
    array = None if axes is None else axes.constant
    if axes is not None and array is None:
        op.rw.use_at_run_time(1, "axes")
        shape = _squeezed(op, x, axes) if op.operator == "Squeeze" else _unsqueezed(op, x, axes)
        empty = "" if x.shape is not None and all(x.shape) else ", if the tensor is not empty"
        op.note(
            f"axes at run time: a Reshape to the computed shape{empty}",
            Exactness.ASSUMED if empty else None,
        )
        return op.Reshape(x, shape)
    if array is not None and array.size:
        return op.itself(x, axes=[int(axis) for axis in array.reshape(-1)])
    return op.itself(x) if op.operator == "Squeeze" else x


def _marks(op: Op, axes: Value, count: Value) -> Value:
    """Return a vector of `count` numbers (a shape): 1 at each of the axes, and 0 elsewhere."""
    axes = axes.reshape(-1)
    zeros = op.ConstantOfShape(count, value=_tensor(0))
    ones = op.ConstantOfShape(op.Shape(axes), value=_tensor(1))
    return op.ScatterElements(zeros, axes, ones)


def _tensor(value: int) -> TensorProto:
    return onnx.helper.make_tensor("", TensorProto.INT64, [1], [value])


def _squeezed(op: Op, x: Value, axes: Value) -> Value:
    """Return the new shape: the lengths of the axes without a mark."""
    shape = op.Shape(x)
    marks = _marks(op, axes, op.Shape(shape))
    return op.Compress(shape, ~op.Cast(marks, to=TensorProto.BOOL), axis=0)


def _unsqueezed(op: Op, x: Value, axes: Value) -> Value:
    """Return the new shape: 1 at each mark, and the old lengths in order elsewhere."""
    ones = op.constant([1])
    shape = op.Shape(x)
    added = op.Shape(axes.reshape(-1))
    rank = op.Shape(shape) + added
    free = ones - _marks(op, axes, rank)
    # Free positions count from 1. Marked ones have 0, the index of the 1 in front of the lengths.
    index = op.CumSum(free, op.constant(0)) * free
    return op.Gather(op.Concat(ones, shape, axis=0), index, axis=0)
