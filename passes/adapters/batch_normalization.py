"""BatchNormalization: training, told by outputs and then by an attribute; statistics over channels alone."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("BatchNormalization", 15, reason="scale and bias may be of another type than the data")


@adapter("BatchNormalization", to=6)
def batch_normalization_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`consumed_inputs`, a hint that memory may be used again, is gone."""
    rw.drop("consumed_inputs")


@adapter("BatchNormalization", to=7)
def batch_normalization_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`is_test` is gone: with Y alone the node is for inference, with its other outputs for training.

    What changes: in test mode the other outputs were not filled, so they are left out.
    """
    if rw.pop("is_test", 0):
        for name in node.output[1:]:
            if name and rw.is_read(name):
                rw.refuse(
                    f"output {name!r} is read, and in test mode (is_test) it is not filled", code="no-equal"
                )
        del node.output[1:]


@adapter("BatchNormalization", to=9)
def batch_normalization_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`spatial` is gone: with spatial=0 all axes but the first are flattened into channels, and shaped back.

    Why equal: the standard's own advice (BatchNormalization-9), and each number is computed as before.
    """
    if rw.pop("spatial", 1):
        return
    shape, own = (
        rw.before("Shape", [node.input[index]], hint=hint) for index, hint in ((0, "shape"), (3, "own_shape"))
    )
    node.input[0] = rw.before("Flatten", [node.input[0]], hint="flat", axis=1)
    line = rw.constant(np.array([-1]), "line")
    for index in range(1, 5):
        node.input[index] = rw.before("Reshape", [node.input[index], line], hint=f"line_{index}")
    for index, name in enumerate(list(node.output)):
        if name and (index == 0 or rw.is_read(name)):
            rw.after("Reshape", [rw.detach_output(index), own if index else shape], [name])


@adapter("BatchNormalization", to=14)
def batch_normalization_14(node: onnx.NodeProto, rw: Rewriter) -> None:
    """A node with more outputs than Y is told so by `training_mode`, and gives no saved statistics any more.

    Why equal: running_mean and running_var follow the same formula, with the variance of the whole population
    (ONNX Runtime computes both versions with one kernel).
    """
    for name in node.output[3:]:
        if name and rw.is_read(name):
            rw.refuse(
                f"the saved statistic {name!r} is read",
                code="no-equal",
                hint="it served the gradient; stay at opset 13",
            )
    training = any(node.output[1:])
    del node.output[3:]
    while len(node.output) > 1 and not node.output[-1]:
        del node.output[-1]
    if training:
        rw.set("training_mode", 1)
