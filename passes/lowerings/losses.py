"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: the classes are gathered, weighted and reduced."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import lowering
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, scalar, squeeze, unsqueeze


@lowering("NegativeLogLikelihoodLoss", leaves=12)
def negative_log_likelihood_loss_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The numbers of the classes are gathered, negated, weighted and reduced.

    What changes: the node becomes GatherElements, Neg, Squeeze, Mul, ReduceSum and Div; classes that are ignored become zeros by
    Where.

    Why equal: the function body of the standard, which runtimes without a kernel compute. Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    _write_loss(rw, rw.input(0), rw.input(1), rw.input(2))


@lowering("SoftmaxCrossEntropyLoss", leaves=12)
def softmax_cross_entropy_loss_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """LogSoftmax over the classes, of which the loss is taken as in NegativeLogLikelihoodLoss.

    What changes: the scores are reshaped to three axes, with the classes last for LogSoftmax, and back; then the node becomes
    what `negativeloglikelihoodloss-12-down` says.

    Why equal: the function body of the standard, which runtimes without a kernel compute. Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    scores = rw.input(0)
    flat = rw.before("Reshape", [scores, rw.constant(np.array([0, 0, -1]), "flat")], hint="flat")
    last = rw.before("Transpose", [flat], hint="classes_last", perm=[0, 2, 1])
    logs = rw.before("LogSoftmax", [last], hint="logs", axis=2)
    back = rw.before("Transpose", [logs], hint="logs", perm=[0, 2, 1])
    logs = rw.before("Reshape", [back, rw.before("Shape", [scores], hint="shape")], hint="log_prob")
    rw.scope.record_type(logs, rw.scope.value_type(scores))
    if rw.output(1):
        rw.after("Identity", [logs], [rw.output(1)])
    _write_loss(rw, logs, rw.input(1), rw.input(2))


def _write_loss(rw: LoweringRewriter, logs: str, target: str, weight: str) -> None:
    like = rw.input(0)
    reduction, ignored = rw.get("reduction", "mean"), rw.get("ignore_index")
    classes = unsqueeze(rw, target, [1])
    mask = ""
    if ignored is not None:
        wanted = rw.constant(np.array(ignored, np.int64), "ignore_index")
        mask = rw.before("Equal", [cast(rw, classes, TensorProto.INT64), wanted], hint="ignored")
        none = rw.before("Sub", [classes, classes], hint="no_class")
        classes = rw.before("Where", [mask, none, classes], hint="classes")
    taken = rw.before("GatherElements", [logs, classes], hint="taken", axis=1)
    if mask:
        taken = rw.before("Where", [mask, scalar(rw, 0, like), taken], hint="taken")
    loss = squeeze(rw, rw.before("Neg", [taken], hint="loss"), [1])
    factor = ""
    if weight:
        factor = rw.before("Gather", [weight, classes], hint="weights")
        if mask:
            factor = rw.before("Where", [mask, scalar(rw, 0, like), factor], hint="weights")
        factor = squeeze(rw, factor, [1])
    elif mask:
        factor = rw.before(
            "Where", [squeeze(rw, mask, [1]), scalar(rw, 0, like), scalar(rw, 1, like)], hint="weights"
        )
    if factor:
        loss = rw.before("Mul", [loss, factor], hint="loss")
    output = rw.output(0)
    if reduction == "none":
        rw.after("Identity", [loss], [output])
    elif reduction == "mean" and factor:
        total, count = (rw.before("ReduceSum", [value], hint="sum", keepdims=0) for value in (loss, factor))
        rw.after("Div", [total, count], [output])
    else:
        rw.after("ReduceMean" if reduction == "mean" else "ReduceSum", [loss], [output], keepdims=0)
    rw.remove()
