"""BatchNormalization: training is an attribute since 14, several element types since 15, statistics per channel only since 9."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from onnx_migrate.advice import Advice
from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.plugins import Exactness, LoweringRewriter, Rewriter, adapter, compatible, lowering

compatible("BatchNormalization", 15, reason="scale and bias may have another type than the data")


@adapter("BatchNormalization", to=7)
def batch_normalization_7(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`is_test` is removed: the number of outputs now shows whether the node is for inference or training.

    What changes: a node with the output Y alone is for inference, and one with more outputs for training. With is_test=1 the
    other outputs were not computed, so they are removed.
    """
    if rw.pop("is_test", 0):
        for name in node.output[1:]:
            if name and rw.is_read(name):
                rw.refuse(f"output {name!r} is used, but with is_test=1 it is not computed", code="no-equal")
        del node.output[1:]


@adapter("BatchNormalization", to=9)
def batch_normalization_9(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`spatial` is removed: with spatial=0, all axes after the first are flattened into channels and restored afterwards.

    Why equal: the text of BatchNormalization-9 tells users to flatten the input in this way. Each element has its own
    statistics before and after.
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

    Why equal: running_mean and running_var follow the same formula, with the population variance. ONNX Runtime computes both
    versions with one kernel.
    """
    for name in node.output[3:]:
        if name and rw.is_read(name):
            rw.refuse(
                f"output {name!r}, a saved statistic of the batch, is used, but BatchNormalization-14 has no such output",
                code="no-equal",
                hint=Advice("it was for the gradient; target opset 13 or older", options={"opset": 13}),
            )
    training = any(node.output[1:])
    del node.output[3:]
    while len(node.output) > 1 and not node.output[-1]:
        del node.output[-1]
    if training:
        rw.set("training_mode", 1)


_DATA, _SCALE, _STATISTICS = ((0,), (0,)), ((1, 2), ()), ((3, 4), (1, 2))
"""Indices of the inputs and outputs that share an element type in version 15."""


@lowering("BatchNormalization", leaves=15)
def batch_normalization_15_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Data, scale and bias are cast to one type.

    What changes: if the types differ, the narrower one is cast to the wider. A result computed in a wider type is cast back.

    Why equal: the wider type represents every value of the narrower one. A kernel with two types may round a result
    differently.

    Limits: if a type is unknown, onnx-migrate assumes that both are the same.
    """
    _one_type(rw, _DATA, _SCALE)


@lowering("BatchNormalization", leaves=14, types=LostTypes.ROUNDED)
def batch_normalization_14_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """`training_mode` is dropped: a node in training mode has five outputs, and all values have one type.

    What changes: in training mode the outputs saved_mean and saved_var are added, and no node reads them.
    BatchNormalization-9 marks training by these outputs. Statistics of another type than the data are cast as in the step
    from 15.

    Why equal: the texts give the same formulas. ONNX Runtime computes both versions with one kernel. Y, the mean and the
    variance are equal bit for bit in training mode too.

    Limits: if a type is unknown, onnx-migrate assumes that all are the same.
    """
    if rw.pop("training_mode", 0):
        for index, hint in enumerate(("running_mean", "running_var", "saved_mean", "saved_var"), start=1):
            if len(node.output) <= index:
                node.output.append("")
            if not node.output[index]:
                node.output[index] = rw.fresh(hint)
    else:
        del node.output[1:]
    _one_type(rw, _DATA, _SCALE, _STATISTICS)


def _one_type(rw: LoweringRewriter, *groups: tuple[Sequence[int], Sequence[int]]) -> None:
    """Cast each group of inputs and outputs to the widest of their types."""
    dtypes = [rw.dtype(rw.input(inputs[0])) for inputs, _ in groups]
    known_types = {dtype for dtype in dtypes if dtype is not None}
    if None in dtypes:
        rw.note("its inputs are assumed to have one element type", Exactness.ASSUMED)
    if len(known_types) < 2:
        return
    wide = TensorProto.DOUBLE if TensorProto.DOUBLE in known_types else TensorProto.FLOAT
    for (inputs, outputs), dtype in zip(groups, dtypes, strict=True):
        if dtype is not None and dtype != wide:
            rw.cast_around(inputs, [index for index in outputs if rw.output(index)], wide, dtype)
            if outputs:
                rw.exactness = rw.exactness or Exactness.EQUIVALENT
    rw.note("values of several element types are computed in the widest of them")


@formula("BatchNormalization", since=1, exactness=EQUIVALENT)
def batch_normalization(
    op: Op, x: Value, scale: Value, bias: Value, mean: Value, variance: Value, *, epsilon: float, spatial: int | None,
    training_mode: int | None,
) -> Value:  # fmt: skip
    """BatchNormalization becomes Sub, Div, Mul and Add with the statistics of each channel.

    Why equal: the text for inference says so: the mean is subtracted, the result is divided by the standard deviation, scaled
    and shifted. The largest difference seen is 5e-7 of the largest number.

    Limits: onnx-migrate refuses training, and `spatial` = 0, which opset 9 dropped.
    """
    if training_mode or spatial == 0 or any(op.rw.node.output[1:]):
        op.refuse(
            "a BatchNormalization that trains, or counts each place as a channel, has no equal",
            code="no-equal",
        )
    column = [-1, *[1] * (x.need_rank() - 2)]
    if len(column) > 1:
        scale, bias, mean, variance = (value.reshape(*column) for value in (scale, bias, mean, variance))
    factor = scale / op.Sqrt(variance + epsilon)
    return (x - mean) * factor + bias
