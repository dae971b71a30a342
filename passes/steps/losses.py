"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the classes are gathered, weighted and reduced."""

from __future__ import annotations

from functools import partial

from onnx_migrate.engine.steps.formula import Op, TensorProto, Value, formula


@formula("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood_loss(
    op: Op, logs: Value, target: Value, weight: Value | None, *, ignore_index: int | None, reduction: str
) -> Value:
    """The numbers of the classes are gathered, negated, weighted and reduced.

    What changes: the node becomes GatherElements, Neg, Squeeze, Mul, ReduceSum and Div; classes that are ignored become zeros by
    Where.

    Why equal: the function body of the standard, which runtimes without a kernel compute. Bit for bit in ONNX Runtime.
    """
    return _loss(op, logs, logs, target, weight, ignore_index, reduction)


@formula("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy_loss(
    op: Op, scores: Value, target: Value, weight: Value | None, *, ignore_index: int | None, reduction: str
) -> tuple[Value, Value]:
    """LogSoftmax over the classes, of which the loss is taken as in NegativeLogLikelihoodLoss.

    What changes: the scores are reshaped to three axes, with the classes last for LogSoftmax, and back; then the node becomes
    what `negativeloglikelihoodloss-12-down` says.

    Why equal: the function body of the standard, which runtimes without a kernel compute. Bit for bit in ONNX Runtime.
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
        classes = op.Where(mask, classes - classes, classes)
    taken = op.GatherElements(logs, classes, axis=1)
    if mask is not None:
        taken = op.Where(mask, constant(0), taken)
    loss = op.Squeeze(-taken, [1])
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
