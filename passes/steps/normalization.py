"""Normalizations, with the arithmetic that they consist of: Layer, RMS, Group, Instance, MeanVariance, Lp and LRN."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.engine.steps.formula import EQUIVALENT, LostTypes, Op, TensorProto, Value, formula
from onnx_migrate.plugins import Rewriter, adapter, unchanged
from onnx_migrate.rewrite.bounded_arrays import bounded

DOUBLE = TensorProto.DOUBLE

unchanged(
    "SimplifiedLayerNormalization",
    23,
    reason="the operator is ONNX Runtime's own at every opset, and one kernel computes it",
    types=LostTypes.OWN,
)


@adapter("LayerNormalization", to=17)
def layer_normalization_17(node: onnx.NodeProto, rw: Rewriter) -> None:
    """LayerNormalization of the standard has one type; ONNX Runtime's own gives a result of the type of its scale.

    What changes: if the data and the scale have two types, Casts to the wider type, and back to that of the scale. Else
    nothing.

    Why equal: ONNX Runtime computes both with one kernel (onnxruntime/core/providers/cpu/nn/layer_norm_impl.cc).
    """
    _one_type(node, rw)


@adapter("SimplifiedLayerNormalization", to=23)
def simplified_layer_normalization_23(node: onnx.NodeProto, rw: Rewriter) -> None:
    """SimplifiedLayerNormalization, which is ONNX Runtime's own, becomes RMSNormalization of the standard.

    What changes: the name, and Casts around it if the data and the scale have two types. A node with a second output stays,
    since RMSNormalization has none.

    Why equal: attributes and defaults are the same, and ONNX Runtime computes both with one kernel
    (onnxruntime/core/providers/cpu/nn/layer_norm_impl.cc).
    """
    if len(node.output) < 2 or not node.output[1]:
        del node.output[1:]
        rw.rename("RMSNormalization")
        _one_type(node, rw)  # onnx infers the type of the data in place of the scale's


def _one_type(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Cast inputs of several types to the widest, and the first output back to the type of the scale."""
    dtypes, result = [rw.dtype(name) for name in node.input if name], node.output[0]
    if None in dtypes or len(set(dtypes)) == 1:
        return
    wide = DOUBLE if DOUBLE in dtypes else TensorProto.FLOAT
    if wide == DOUBLE:  # the kernel normalises in float
        rw.exactness = EQUIVALENT
    for index, dtype in enumerate(dtypes):
        if dtype != wide:
            node.input[index] = rw.before("Cast", [node.input[index]], hint="wide", to=wide)
    if dtypes[1] != wide:
        rw.after("Cast", [rw.detach_output(0)], [result], to=dtypes[1])


@adapter("MeanVarianceNormalization", to=13)
def mean_variance_normalization_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axes` is set to its default if it was omitted.

    What changes: no number. onnx's strict shape inference expands the operator's function, which does not contain the
    default, and refuses the model without it (onnx 1.23).
    """
    if rw.attribute("axes") is None:
        rw.set("axes", [0, 2, 3])


@adapter("GroupNormalization", to=21)
def group_normalization_21(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`scale` and `bias` are repeated, since they have one value per channel in place of one per group.

    What changes: constants are repeated by the migration, other values by Expand at run time. For doubles `stash_type`
    is set to double, since its default is float.

    Why equal: the function bodies of both versions (onnx/defs/nn). For half floats version 18 leaves the precision
    open, and ONNX Runtime computes in float, the default from version 21 on.
    """
    if rw.need_dtype(node.input[0]) == DOUBLE:
        rw.set("stash_type", int(DOUBLE))
    shape = rw.shape(node.input[0])
    channels = shape[1] if shape is not None else None
    sizes = ""
    for index, hint in ((1, "scale"), (2, "bias")):
        value = rw.constant_value(node.input[index])
        if value is not None and channels is not None:
            node.input[index] = rw.constant(np.repeat(value, bounded(channels) // value.size), hint)
            continue
        sizes = sizes or _group_sizes(rw)
        column = rw.before(
            "Unsqueeze", [node.input[index], rw.constant(np.array([1]), "column")], hint=f"{hint}_column"
        )
        matrix = rw.before("Expand", [column, sizes], hint=f"{hint}_matrix")
        node.input[index] = rw.before("Reshape", [matrix, rw.constant(np.array([-1]), "flat")], hint=hint)


def _group_sizes(rw: Rewriter) -> str:
    """Return the value [groups, channels per group]."""
    groups = rw.before("Shape", [rw.node.input[1]], hint="groups")
    channels = rw.before("Shape", [rw.node.input[0]], hint="channels", start=1, end=2)
    return rw.before("Concat", [groups, rw.before("Div", [channels, groups])], hint="group_sizes", axis=0)


@formula("LayerNormalization", since=17, exactness=EQUIVALENT, types=LostTypes.OWN)
def layer_normalization(
    op: Op, x: Value, scale: Value, bias: Value | None, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Value | None, ...]:
    """The mean is subtracted, the rest divided by its standard deviation, scaled and shifted.

    What changes: the node becomes ReduceMean, Sub, Pow, ReduceMean, Add, Sqrt, Div, Mul and Add. ONNX Runtime and other
    runtimes make one node of that form again. After a Cast from integers, that single node would not load, so Mul squares
    instead of Pow. The variance is the mean of the squared deviations. Half floats compute in the type of `stash_type` between
    Casts, doubles in double.

    Why equal: the equations of the standard's text. Its function body computes the variance as the difference of two means,
    which cancels: on data around 10,000 it is negative. Measured against ONNX Runtime's kernel: 2e-7 of the largest number.

    Limits: the rank must be known if `axis` is counted from the front.
    """
    dtype = x.need_dtype()
    wide = dtype if dtype == DOUBLE else stash_type
    source = x.cast(wide)
    axes = _axes_from(op, x, axis)
    mean = op.ReduceMean(source, axes)
    deviation = source - mean
    # Runtimes know the whole as one normalization by the Pow.
    square = deviation * deviation if _is_cast(op, source) else deviation**2
    std = op.Sqrt(op.ReduceMean(square, axes) + epsilon)
    inverse = op.Reciprocal(std) if op.is_read(2) else None
    normalized = deviation / std if inverse is None else deviation * inverse
    result = normalized * scale.cast(wide)
    result = result if bias is None else result + bias.cast(wide)
    return (
        result.cast(scale.dtype or dtype),
        mean.cast(stash_type) if op.is_read(1) else None,
        inverse if inverse is None else inverse.cast(stash_type),
    )


@formula("RMSNormalization", since=23, exactness=EQUIVALENT, types=LostTypes.OWN)
def rms_normalization(op: Op, x: Value, scale: Value, *, axis: int, epsilon: float, stash_type: int) -> Value:
    """The data is divided by the root of the mean of its squares, and scaled.

    What changes: the node becomes Pow, ReduceMean, Add, Sqrt, Div and Mul. Half floats compute in the type of `stash_type`
    between Casts, doubles in double.

    Why equal: the equations of the standard's text. Measured against ONNX Runtime's kernel: 4 units in the last place.

    Limits: the rank must be known if `axis` is counted from the front.
    """
    dtype = x.need_dtype()
    source = x.cast(dtype if dtype == DOUBLE else stash_type)
    root = op.Sqrt(op.ReduceMean(source**2, _axes_from(op, x, axis)) + epsilon)
    normalized = source / root
    return (normalized * scale.cast(source.need_dtype())).cast(scale.dtype or dtype)


@formula("GroupNormalization", since=21, types=LostTypes.OWN)
def group_normalization_21_down(
    op: Op, x: Value, scale: Value, bias: Value, *, epsilon: float, num_groups: int, stash_type: int
) -> Value:
    """Each group of channels is normalised as one row, and each channel is scaled and shifted.

    What changes: Reshape to [N, groups, all others], the equations of the standard, and Reshape back.

    Why equal: the standard's function body, with fewer Reshapes; runtimes without a kernel compute that. The results of ONNX
    Runtime are equal bit for bit.

    Limits: a tensor without elements cannot be reshaped so, nor by the body.
    """
    dtype = x.need_dtype()
    normalized = _normalized_rows(op, x.cast(stash_type).reshape(0, num_groups, -1), epsilon)
    shape = op.Shape(x)
    channels = op.Reshape(normalized, shape).reshape(0, 0, -1).cast(dtype)
    return _scaled_and_shifted(op, channels, scale, bias, shape)


@formula("GroupNormalization", since=18, types=LostTypes.OWN)
def group_normalization_18_down(
    op: Op, x: Value, scale: Value, bias: Value, *, epsilon: float, num_groups: int
) -> Value:
    """Each group of channels is normalised, scaled and shifted as one row.

    Why equal: the standard's function body, with fewer Reshapes; runtimes without a kernel compute that. The results of ONNX
    Runtime are equal bit for bit.

    Limits: a tensor without elements cannot be reshaped so, nor by the body.
    """
    x.need_dtype()
    normalized = _normalized_rows(op, x.reshape(0, num_groups, -1), epsilon)
    return _scaled_and_shifted(op, normalized, scale, bias, op.Shape(x))


@formula("MeanVarianceNormalization", since=9, exactness=EQUIVALENT)
def mean_variance_normalization(op: Op, x: Value, *, axes: list[int]) -> Value:
    """The mean is subtracted, and the rest divided by its standard deviation plus 1e-9.

    Why equal: the equations of the standard's text. The variance is the mean of the squared deviations, which does not cancel
    as a difference of two means does. Measured against ONNX Runtime's kernel: 2e-7 of the largest number.
    """
    x.need_dtype()
    if x.rank is not None and not all(-x.rank <= axis < x.rank for axis in axes):
        op.refuse(f"has the axes {axes}, and its input {x.rank} of them", code="invalid-node")
    deviation = x - op.ReduceMean(x, axes)
    # 1e-9 is 0 in half floats, as in the function body of the standard.
    return deviation / (op.Sqrt(op.ReduceMean(deviation**2, axes)) + 1e-9)


@formula("InstanceNormalization", since=1, exactness=EQUIVALENT)
def instance_normalization(op: Op, x: Value, scale: Value, bias: Value, *, epsilon: float) -> Value:
    """Each channel of each item is centred, divided by its standard deviation, scaled and shifted.

    Why equal: the text. The variance is the mean of the squared deviations, which does not cancel. 5e-7 of the largest number
    seen.
    """
    rank = x.need_rank()
    axes = list(range(2, rank))
    deviation = x - op.ReduceMean(x, axes)
    variance = op.ReduceMean(deviation * deviation, axes)
    normalized = deviation / op.Sqrt(variance + epsilon)
    scale, bias = (value.reshape(-1, *[1] * (rank - 2)) for value in (scale, bias))
    return normalized * scale + bias


@formula("LRN", since=1, exactness=EQUIVALENT)
def lrn(op: Op, x: Value, *, alpha: float, beta: float, bias: float, size: int) -> Value:
    """An AveragePool averages the squares over neighbouring channels, and the data is divided by a power of that.

    What changes: Mul, Reshape and Unsqueeze to one image per item, whose rows are the channels, AveragePool, Reshape, Mul, Add,
    Pow and Div.

    Why equal: the text. The sum of `size` squares, divided by `size`, is their average, with zeros outside. The largest
    difference measured is 1e-6.
    """
    pads = [(size - 1) // 2, 0, size // 2, 0]
    rows = op.Unsqueeze((x * x).reshape(0, 0, -1), [1])
    pooled = op.AveragePool(rows, kernel_shape=[size, 1], pads=pads, count_include_pad=1)
    means = op.Reshape(pooled, op.Shape(x))
    return x / (means * alpha + bias) ** beta


def _axes_from(op: Op, x: Value, axis: int) -> list[int]:
    """Return the axes from `axis` to the last, counted from the front if the rank is known."""
    rank = x.need_rank() if axis >= 0 else x.rank
    if rank is None:
        return list(range(axis, 0))
    if not -rank <= axis < rank:
        op.refuse(f"has axis={axis}, and its input {rank} axes", code="invalid-node")
    return list(range(axis % rank, rank))


def _is_cast(op: Op, value: Value) -> bool:
    """Return whether a value is cast from integers, double or bfloat16.

    ONNX Runtime fuses such a Cast into the single node. It has no kernel for that node, and does not load the model.
    """
    producer = op.rw.producer(value.name)
    while producer is not None and producer.op_type == "Identity":
        producer = op.rw.producer(producer.input[0])
    if producer is None or producer.op_type != "Cast":
        return False
    return op.rw.dtype(producer.input[0]) not in (TensorProto.FLOAT16, TensorProto.FLOAT)


def _normalized_rows(op: Op, rows: Value, epsilon: float) -> Value:
    """Normalise over axis 2, as the function body of the standard does."""
    mean = op.ReduceMean(rows, [2])
    variance = op.ReduceMean(rows * rows, [2]) - mean * mean
    return (rows - mean) / op.Sqrt(variance + epsilon)


def _scaled_and_shifted(op: Op, value: Value, scale: Value, bias: Value, shape: Value) -> Value:
    """Multiply and add one number per row of `value`, and give it its shape back."""
    value = scale.reshape(1, -1, 1) * value
    return op.Reshape(bias.reshape(1, -1, 1) + value, shape)
