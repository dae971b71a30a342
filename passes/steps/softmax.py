"""Softmax, LogSoftmax and Hardmax, which normalise one axis from opset 13 on, before all from `axis` on; their losses."""

from __future__ import annotations

from functools import partial

import onnx

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.plugins import Rewriter, adapter, compatible

compatible("Softmax LogSoftmax Hardmax", 11, reason="negative axes are allowed")


@adapter("Softmax", "LogSoftmax", "Hardmax", to=13)
def softmax_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axis` is the one axis that is normalised; before, it was the first of those that were normalised together.

    What changes: the default of `axis` was 1 and became -1, so it is set. If more than one axis was normalised together, the
    input is flattened at `axis`, normalised along its second axis and reshaped back. No shape needs to be known before run
    time.

    Why equal: all axes after `axis` have length 1, or Flatten produces the matrix whose rows version 11 normalises
    (onnx/defs/math/old.cc).

    An empty tensor has nothing to normalise, and keeps the axis.

    Limits: a tensor that is empty only at run time may fail at target 13, whose Reshape has no allowzero to restore dims of 0.
    """
    source = node.input[0]
    attribute = rw.attribute("axis")
    if not (attribute and attribute.ref_attr_name):
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
    if attribute:
        rw.preceding[-1].attribute.add().CopyFrom(attribute)
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

    What changes: the default of `axis` was -1 and became 1, so it is set. If another axis than the last is normalised,
    Transposes before and after the node exchange it with the last.

    Why equal: for a single last axis, version 11 normalises the same rows (onnx/defs/math/old.cc). ONNX Runtime's results are
    equal bit for bit.
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
    """The exponentials, after the maximum is subtracted, are divided by their sum.

    Why equal: the text; ONNX Runtime subtracts the maximum too. The largest difference measured is 1.2e-7.
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
    """Return the axes that are normalised together, counted from the front if the rank is known."""
    if op.version >= 13:
        return [axis if x.rank is None else axis % max(x.rank, 1)]
    rank = x.need_rank()
    return list(range(axis % max(rank, 1), rank))


@formula("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(
    op: Op, logs: Value, target: Value, weight: Value | None, *, ignore_index: int | None, reduction: str
) -> Value:
    """The numbers of the classes are gathered, negated, weighted and reduced.

    What changes: the node becomes GatherElements, Neg, Squeeze, Mul, ReduceSum and Div; Where replaces ignored classes by
    zeros.

    Why equal: the function body of the standard, which runtimes without a kernel compute. ONNX Runtime's results are equal bit
    for bit.
    """
    return _loss(op, logs, logs, target, weight, ignore_index, reduction)


@formula("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    op: Op, scores: Value, target: Value, weight: Value | None, *, ignore_index: int | None, reduction: str
) -> tuple[Value, Value]:
    """LogSoftmax over the classes gives the numbers for the loss of NegativeLogLikelihoodLoss.

    What changes: the scores are reshaped to three axes, with the classes last for LogSoftmax, and back. The same nodes follow
    as for `negativeloglikelihoodloss-12-down`.

    Why equal: the function body of the standard, which runtimes without a kernel compute. ONNX Runtime's results are equal bit
    for bit.
    """
    last = op.Transpose(scores.reshape(0, 0, -1), perm=[0, 2, 1])
    logs = op.Transpose(op.LogSoftmax(last, axis=2), perm=[0, 2, 1])
    logs = op.Reshape(logs, op.Shape(scores))
    op.rw.scope.record_type(logs.name, op.rw.scope.value_type(scores.name))
    return _loss(op, scores, logs, target, weight, ignore_index, reduction), logs


def _loss(
    op: Op, like: Value, logs: Value, target: Value, weight: Value | None, ignored: int | None, reduction: str
) -> Value:
    """Return the loss of classes of given logarithms, in the element type of `like`."""
    constant = partial(op.constant, like=like)
    classes = op.Unsqueeze(target, [1])
    mask = None
    if ignored is not None:
        mask = classes.cast(TensorProto.INT64) == ignored
        # An ignored class, such as -100, may be no valid index for the Gather below.
        classes = op.Where(mask, classes - classes, classes)
    losses = op.GatherElements(logs, classes, axis=1)
    if mask is not None:
        losses = op.Where(mask, constant(0), losses)
    loss = op.Squeeze(-losses, [1])
    factor = None
    if weight is not None:
        factor = op.Gather(weight, classes)
        factor = op.Squeeze(factor if mask is None else op.Where(mask, constant(0), factor), [1])
    elif mask is not None:
        factor = op.Where(op.Squeeze(mask, [1]), constant(0), constant(1))
    if factor is not None:
        loss = loss * factor
    if reduction == "none":
        return loss
    if reduction == "mean" and factor is not None:
        return op.ReduceSum(loss, keepdims=False) / op.ReduceSum(factor, keepdims=False)
    return (op.ReduceMean if reduction == "mean" else op.ReduceSum)(loss, keepdims=False)
