"""Normalisations, Softmax and its kin, written with the arithmetic that they consist of."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.decomposition_registry import decomposition
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from ..lowerings.building import integers, iota, reduce, size_of, unsqueeze
from .forms import become, column, number, spatial_axes


@decomposition("InstanceNormalization", exactness=Exactness.EQUIVALENT)
def instance_normalization(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Each channel of each item is centred, divided by its standard deviation, scaled and shifted.

    What changes: ReduceMean, Sub, Mul, ReduceMean, Add, Sqrt, Div, Mul and Add.

    Why equal: the text. The variance is the mean of the squared deviations, which does not cancel. 5e-7 of the largest number
    seen.

    Limits: rank and element type must be known.
    """
    x, axes = rw.input(0), spatial_axes(rw)
    epsilon = rw.get("epsilon", 1e-5)
    deviation = rw.before("Sub", [x, reduce(rw, "ReduceMean", x, axes)], hint="deviation")
    square = rw.before("Mul", [deviation, deviation], hint="square")
    shifted = rw.before("Add", [reduce(rw, "ReduceMean", square, axes), number(rw, epsilon, x)])
    normalized = rw.before("Div", [deviation, rw.before("Sqrt", [shifted])], hint="normalized")
    scale, bias = (column(rw, rw.input(index), len(axes) + 2) for index in (1, 2))
    become(rw, "Add", rw.before("Mul", [normalized, scale], hint="scaled"), bias)


@decomposition("BatchNormalization", exactness=Exactness.EQUIVALENT)
def batch_normalization(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Each channel is centred by its mean, divided by its standard deviation, scaled and shifted.

    What changes: Sub, Add, Sqrt, Div, Mul and Add, with mean, variance, scale and shift as columns.

    Why equal: the text for inference. 5e-7 of the largest number seen.

    Limits: rank and element type must be known; training is refused, and so is `spatial` = 0, which opset 9 dropped.
    """
    x = rw.input(0)
    if rw.get("training_mode", 0) or not rw.get("spatial", 1) or any(node.output[1:]):
        rw.refuse(
            "a BatchNormalization that trains, or counts each place as a channel, has no equal",
            code="no-equal",
        )
    rank = rw.need_rank(x)
    scale, bias, mean, variance = (
        column(rw, rw.input(index), rank) if rank > 2 else rw.input(index) for index in (1, 2, 3, 4)
    )
    shifted = rw.before("Add", [variance, number(rw, rw.get("epsilon", 1e-5), x)], hint="shifted")
    factor = rw.before("Div", [scale, rw.before("Sqrt", [shifted])], hint="factor")
    centred = rw.before("Sub", [x, mean], hint="centred")
    become(rw, "Add", rw.before("Mul", [centred, factor], hint="scaled"), bias)


@decomposition("LRN", exactness=Exactness.EQUIVALENT)
def lrn(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The squares are averaged over neighbouring channels by an AveragePool, and the data is divided by a power of that.

    What changes: Mul, Reshape and Unsqueeze to one image per item, whose rows are the channels, AveragePool, Reshape, Mul, Add,
    Pow and Div.

    Why equal: the text: the sum of `size` squares, divided by `size`, is their average, with zeros outside. 1e-6 seen.

    Limits: the element type must be known.
    """
    x, size = rw.input(0), int(rw.get("size"))
    square = rw.before("Mul", [x, x], hint="square")
    rows = rw.before("Reshape", [square, integers(rw, 0, 0, -1)], hint="rows")
    pooled = rw.before(
        "AveragePool",
        [unsqueeze(rw, rows, [1])],
        kernel_shape=[size, 1],
        pads=[(size - 1) // 2, 0, size // 2, 0],
        count_include_pad=1,
    )
    means = rw.before("Reshape", [pooled, rw.before("Shape", [x])], hint="means")
    scaled = rw.before("Mul", [means, number(rw, rw.get("alpha", 1e-4), x)], hint="scaled")
    base = rw.before("Add", [scaled, number(rw, rw.get("bias", 1.0), x)], hint="base")
    become(rw, "Div", x, rw.before("Pow", [base, number(rw, rw.get("beta", 0.75), x)]))


@decomposition("Softmax", exactness=Exactness.EQUIVALENT)
def softmax(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The exponentials, with the maximum taken out, are divided by their sum.

    What changes: ReduceMax, Sub, Exp, ReduceSum and Div.

    Why equal: the text; ONNX Runtime takes the maximum out too. 1.2e-7 seen.

    Limits: the rank must be known below opset 13, where all axes from `axis` on are one.
    """
    axes = _axes(rw)
    shifted = _below_maximum(rw, axes)
    powers = rw.before("Exp", [shifted])
    become(rw, "Div", powers, reduce(rw, "ReduceSum", powers, axes))


@decomposition("LogSoftmax", exactness=Exactness.EQUIVALENT)
def log_softmax(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The maximum is subtracted, and then the logarithm of the sum of the exponentials.

    What changes: ReduceMax, Sub, Exp, ReduceSum, Log and Sub.

    Why equal: the logarithm of the text of Softmax. 5e-7 seen.

    Limits: the rank must be known below opset 13, where all axes from `axis` on are one.
    """
    axes = _axes(rw)
    shifted = _below_maximum(rw, axes)
    total = reduce(rw, "ReduceSum", rw.before("Exp", [shifted]), axes)
    become(rw, "Sub", shifted, rw.before("Log", [total]))


@decomposition("Hardmax")
def hardmax(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is 1 at the place of the first maximum, and 0 elsewhere: the place is compared with 0, 1, 2 …

    What changes: ArgMax, Equal and Cast; below opset 13 a Flatten before and a Reshape behind them.

    Why equal: the text: the first maximum counts, in ArgMax too. Bit for bit.

    Limits: element type and rank must be known.
    """
    x = rw.input(0)
    dtype, rank = rw.need_dtype(x), rw.need_rank(x)
    if rw.version >= 13:
        axis = int(rw.get("axis", -1)) % rank
        table, places = x, rank
    else:
        table, places, axis = rw.before("Flatten", [x], axis=int(rw.get("axis", 1)) % rank), 2, 1
    top = rw.before("ArgMax", [table], axis=axis, keepdims=1)
    counted = iota(rw, size_of(rw, table, axis))
    if axis < places - 1:
        counted = rw.before(
            "Reshape", [counted, integers(rw, -1, *([1] * (places - 1 - axis)))], hint="places"
        )
    hot = rw.before("Equal", [top, counted], hint="hot")
    if rw.version < 13:
        hot = rw.before("Cast", [hot], to=dtype)
        become(rw, "Reshape", hot, rw.before("Shape", [x]))
        return
    become(rw, "Cast", hot)
    rw.set("to", dtype)


def _axes(rw: LoweringRewriter) -> list[int]:
    if rw.version >= 13:
        axis = int(rw.get("axis", -1))
        rank = rw.rank(rw.input(0))
        return [axis if rank is None else axis % max(rank, 1)]
    rank = rw.need_rank(rw.input(0))
    return list(range(int(rw.get("axis", 1)) % max(rank, 1), rank))


def _below_maximum(rw: LoweringRewriter, axes: list[int]) -> str:
    x = rw.input(0)
    return rw.before("Sub", [x, reduce(rw, "ReduceMax", x, axes)], hint="shifted")
