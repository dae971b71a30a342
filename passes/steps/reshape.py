"""Reshape, whose shape became an input (opset 5) and in which a 0 keeps a length below 14, Expand, and Flatten of other types."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_migrate.engine.steps.formula import LostTypes, Op, Value, formula
from onnx_migrate.plugins import Exactness, LoweringRewriter, Rewriter, adapter, compatible

compatible(
    "Reshape",
    14,
    reason="allowzero was added; by default a 0 in the shape keeps the input's length, as before",
)


@adapter("Reshape", to=5)
def reshape_5(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`shape` moves from an attribute to an input; 0 and -1 in it have the same meaning."""
    rw.drop("consumed_inputs")
    if rw.attribute("shape") is None:
        rw.refuse("has no attribute shape", code="invalid-node")
    rw.attribute_to_input("shape", 1)


@formula("Reshape", since=14, types=LostTypes.EXACT)
def reshape_14_down(op: Op, x: Value, shape: Value, *, allowzero: int) -> Value:
    """`allowzero` goes away: a 0 in the shape keeps the input's length.

    What changes: allowzero=0, the default, is dropped. allowzero=1 becomes one of these:

    - It is dropped if no 0 can be in the shape. That holds if the whole shape is known, or the input is not empty. It also
      holds if the shape has a -1, since 0 and -1 together are invalid.
    - A known shape with a 0 gives an empty tensor, which becomes a constant.
    - An input that is known to be empty gives an empty tensor too, of the shape that is computed at run time.
    - A single length that is computed at run time becomes -1, which gives the same length, 0 included.
    - If each such length is a symbolic dim of the input at the same place, a 0 keeps it.
    - In all other shapes, a 0 becomes -1 at run time.

    Why equal: the text of Reshape-14: allowzero says how Reshape reads a 0 and nothing else.

    Limits: in these other shapes, onnx-migrate assumes that one length at most is 0, and the report says so.
    """
    return _without_allowzero(op, x, shape) if allowzero else op.itself(x, shape, allowzero=None)


def _without_allowzero(op: Op, x: Value, shape: Value) -> Value:
    lengths = op.rw.partly_known(shape.name)
    if lengths is not None and None not in lengths and 0 in lengths:
        if -1 in lengths:
            op.refuse(f"its shape {lengths} has a 0 and a -1, which allowzero=1 forbids", code="invalid-node")
        op.note("the shape has a 0, so the result is an empty constant")
        return op.constant(np.zeros([length or 0 for length in lengths], x.numpy_type))
    old = x.shape
    if old is not None and 0 in old and x.numpy_type.kind in "fiub":
        op.note("the tensor is empty, so the result is as well")
        return op.ConstantOfShape(shape, value=helper.make_tensor("", x.need_dtype(), [1], [0]))
    full = old is not None and all(old)
    if full or (lengths is not None and (None not in lengths or -1 in lengths)):
        return op.itself(x, shape, allowzero=None)
    if lengths is not None and lengths.count(None) == 1 and 0 not in lengths:
        op.note("the length that is computed at run time is written as -1")
        return op.itself(x, [-1 if length is None else length for length in lengths], allowzero=None)
    if lengths is not None and _zeros_are_kept(op.rw, lengths):
        return op.itself(x, shape, allowzero=None)
    zeros = op.Cast(op.Equal(shape, [0]), to=TensorProto.INT64)
    op.note(
        "a length of 0 that is computed at run time is written as -1, if there is one alone",
        Exactness.ASSUMED,
    )
    return op.itself(x, shape - zeros, allowzero=None)


def _zeros_are_kept(rw: LoweringRewriter, lengths: list[int | None]) -> bool:
    """Return whether each length that is computed at run time is that of the input at the same place, by its name."""
    old, new = rw.scope.value_type(rw.input(0)).symbols, rw.scope.value_type(rw.output(0)).symbols
    return all(
        at < min(len(old), len(new)) and old[at] != "" and old[at] == new[at]
        for at, length in enumerate(lengths)
        if length is None
    )


@formula("Reshape", since=1)
def reshape(op: Op, x: Value, shape: Value, *, allowzero: int) -> Value:
    """`allowzero` goes away: a 0 in the shape keeps the input's length.

    What changes: the same as in the step down from opset 14 (`onnx-migrate explain reshape-14-down`), at the opset of the
    model.

    Why equal: the text of Reshape-14: allowzero says how Reshape reads a 0 and nothing else.

    Limits: those of the step. A Reshape without allowzero has no other form.
    """
    if not allowzero:
        op.refuse("no other operator does what it does", code="target-lacks")
    return _without_allowzero(op, x, shape)


@formula("Flatten", since=9, types=LostTypes.OWN)
def flatten_9_down(op: Op, x: Value, *, axis: int) -> Value:
    """Other types than floats are reshaped.

    What changes: a Flatten of another type than float16, float and double becomes a Reshape to the two lengths. They are
    computed from the shape if they are not fixed.

    Why equal: both keep the elements in their order.

    Limits: if lengths are not fixed, onnx-migrate assumes that the tensor is not empty.
    """
    if x.need_dtype() in (TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE):
        return op.itself(x)
    static = x.static
    if static is not None:
        sizes = [math.prod(static[:axis]), math.prod(static[axis:])]
        return op.constant(np.zeros(sizes, x.numpy_type)) if 0 in sizes else op.Reshape(x, sizes)
    op.note("a Reshape to two lengths, if the tensor is not empty", Exactness.ASSUMED)
    if axis <= 1:
        return op.Reshape(x, [0 if axis else 1, -1])
    lengths = op.Shape(x)
    first = op.Gather(lengths, [0])
    for at in range(1, axis):
        first = first * op.Gather(lengths, [at])
    return op.Reshape(x, op.Concat(first, [-1], axis=0))
