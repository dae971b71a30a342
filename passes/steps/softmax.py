"""Softmax, LogSoftmax and Hardmax: from opset 13 on they normalise one axis, before all axes from `axis` on."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, Value, formula
from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    compatible(_name, 11, reason="negative axes are allowed")


@adapter("Softmax", "LogSoftmax", "Hardmax", to=13)
def softmax_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axis` is the one axis that is normalised, in place of the first of those that are normalised together.

    What changes: the default of `axis` was 1 and became -1, so it is set. Where more than one axis was normalised
    together, the input is flattened at `axis`, normalised along its second axis and reshaped back; no shape needs to be
    known before run time.

    Why equal: all axes after `axis` have length 1, or Flatten produces the matrix whose rows version 11 normalises
    (onnx/defs/math/old.cc).

    An empty tensor has nothing to normalise, and keeps the axis.

    Limits: a tensor that is empty at run time alone may fail at target 13, whose Reshape has no allowzero to restore dims of 0.
    """
    source = node.input[0]
    given = rw.attribute("axis")
    if not (given and given.ref_attr_name):
        axis, shape = rw.get("axis", 1), rw.shape(source)
        if shape is not None and 0 in shape and -len(shape) <= axis < len(shape):
            rw.set("axis", axis)
            rw.note("its input is empty, so nothing is normalised")
            return
        alone = _alone(shape, axis)
        if alone is not None:
            rw.set("axis", alone)
            rw.note("all axes after the axis have length 1, so only that axis is normalised")
            return
    node.input[0] = rw.before("Flatten", [source], hint="flat")
    if given:
        rw.preceding[-1].attribute.add().CopyFrom(given)
    rw.set("axis", -1)
    dims = rw.before("Shape", [source], hint="shape")
    if rw.target >= 14:
        rw.version = 14
    name = node.output[0]
    rw.after(
        "Reshape",
        [rw.detach_output(0, "flat_result"), dims],
        [name],
        allowzero=1 if rw.target >= 14 else None,
    )
    rw.note("the input is flattened at the axis, normalised along the second axis and reshaped back")


def _alone(shape: tuple[int | None, ...] | None, axis: int) -> int | None:
    """Return the only axis from `axis` on whose length is not 1, None if there may be several."""
    if axis == -1:
        return -1
    if shape is not None and -len(shape) <= axis < len(shape) and all(dim == 1 for dim in shape[axis:][1:]):
        return axis
    return None


@formula("Softmax", "LogSoftmax", "Hardmax", since=13, types=LostTypes.ROUNDED)
def softmax_13_down(op: Op, x: Value, *, axis: int) -> Value:
    """`axis` is the first of the axes that are normalised together, so the normalised axis has to be the last.

    What changes: the default of `axis` was -1 and became 1, so it is set. Where another axis than the last is
    normalised, Transposes before and after the node exchange it with the last.

    Why equal: of one last axis, version 11 normalises the same rows (onnx/defs/math/old.cc). Bit for bit in ONNX Runtime.
    """
    rank = 0 if axis == -1 else x.need_rank()
    axis %= max(rank, 1)
    if rank == 0 or axis == rank - 1:
        return op.itself(x, axis=-1)
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    op.note("the normalised axis is exchanged with the last one before and after")
    return op.Transpose(op.itself(op.Transpose(x, perm=perm), axis=-1), perm=perm)


@formula("Softmax", since=1, exactness=EQUIVALENT)
def softmax(op: Op, x: Value, *, axis: int) -> Value:
    """The exponentials, with the maximum taken out, are divided by their sum.

    Why equal: the text; ONNX Runtime takes the maximum out too. 1.2e-7 seen.
    """
    axes = _axes(op, x, axis)
    powers = op.Exp(x - op.ReduceMax(x, axes))
    return powers / op.ReduceSum(powers, axes)


@formula("LogSoftmax", since=1, exactness=EQUIVALENT)
def log_softmax(op: Op, x: Value, *, axis: int) -> Value:
    """The maximum is subtracted, and then the logarithm of the sum of the exponentials.

    Why equal: the logarithm of the text of Softmax. 5e-7 seen.
    """
    axes = _axes(op, x, axis)
    shifted = x - op.ReduceMax(x, axes)
    return shifted - op.Log(op.ReduceSum(op.Exp(shifted), axes))


@formula("Hardmax", since=1)
def hardmax(op: Op, x: Value, *, axis: int) -> Value:
    """It is 1 at the place of the first maximum, and 0 elsewhere: the place is compared with 0, 1, 2 …

    Why equal: the text: the first maximum counts, in ArgMax too. Bit for bit.
    """
    dtype, rank = x.need_dtype(), x.need_rank()
    axis %= rank
    table = x
    if op.version < 13:
        table, rank, axis = op.Flatten(x, axis=axis), 2, 1
    top = op.ArgMax(table, axis=axis, keepdims=1)
    counted = op.iota(op.size_of(table, axis))
    if axis < rank - 1:
        counted = counted.reshape(-1, *[1] * (rank - 1 - axis))
    hot = op.Cast(top == counted, to=dtype)
    return hot if op.version >= 13 else op.Reshape(hot, op.Shape(x))


def _axes(op: Op, x: Value, axis: int) -> list[int]:
    """Return the axes that are normalised together, counted from the front where the rank is known."""
    if op.version >= 13:
        return [axis if x.rank is None else axis % max(x.rank, 1)]
    rank = x.need_rank()
    return list(range(axis % max(rank, 1), rank))
