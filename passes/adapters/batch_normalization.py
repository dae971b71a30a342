"""BatchNormalization: training mode became an attribute (14), and statistics are per channel only (9)."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("BatchNormalization", 15, reason="scale and bias may have another type than the data")


@adapter("BatchNormalization", to=6)
def batch_normalization_6(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`consumed_inputs`, a hint that memory may be reused, was removed; it does not change the result."""
    rw.drop("consumed_inputs")


@adapter("BatchNormalization", to=7)
def batch_normalization_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`is_test` was removed: a node with the output Y alone is for inference, one with more outputs for training.

    What changes: with is_test=1 the other outputs were not computed, so they are removed.
    """
    if rw.pop("is_test", 0):
        for name in node.output[1:]:
            if name and rw.is_read(name):
                rw.refuse(f"output {name!r} is used, but with is_test=1 it is not computed", code="no-equal")
        del node.output[1:]


@adapter("BatchNormalization", to=9)
def batch_normalization_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`spatial` was removed: with spatial=0, all axes after the first are flattened into channels and restored afterwards.

    Why equal: the text of BatchNormalization-9 says to flatten the input so; each element has its own statistics before
    and after.
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
    """`training_mode` is set if the node has more outputs than Y, and saved_mean and saved_var are removed.

    Why equal: running_mean and running_var follow the same formula, with the population variance (ONNX Runtime
    computes both versions with one kernel).
    """
    for name in node.output[3:]:
        if name and rw.is_read(name):
            rw.refuse(
                f"output {name!r}, a saved statistic of the batch, is used, but BatchNormalization-14 has no such output",
                code="no-equal",
                hint="it was for the gradient; target opset 13 or older",
            )
    training = any(node.output[1:])
    del node.output[3:]
    while len(node.output) > 1 and not node.output[-1]:
        del node.output[-1]
    if training:
        rw.set("training_mode", 1)
