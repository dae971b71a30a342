"""ONNX Runtime's quantised operators (com.microsoft): dequantise, compute, quantise; integer products keep their core."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, TensorProto, Value, formula

from .products import WINDOWS, by_channels

_T = TensorProto


def scalar(op: Op, value: Value) -> Value:
    """Return a value of one element as a scalar. Any other value, or one of unknown shape, is returned unchanged."""
    if value.shape != (1,) and (value.static is None or value.static == () or np.prod(value.static) != 1):
        return value
    # The standard reads a vector of scales as one scale for each step along an axis.
    array = value.constant
    return op.constant(array.reshape(())) if array is not None else op.Squeeze(value, [0])


def scalars(op: Op, *values: Value | None) -> list[Value | None]:
    """Return each value as `scalar` does, and None for an input that the node omits."""
    return [None if value is None else scalar(op, value) for value in values]


def dequantized(op: Op, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Return x as floats, by one scale and zero point."""
    zero, factor = scalars(op, zero_point, scale)
    return op.DequantizeLinear(x, factor, zero)


def quantized(op: Op, y: Value, scale: Value, zero_point: Value | None, like: Value) -> Value:
    """Return floats as integers, of the type of the zero point, or of `like` if there is none."""
    zero = op.constant(0, like) if zero_point is None else scalar(op, zero_point)
    return op.QuantizeLinear(y, scalar(op, scale), zero)


@formula("com.microsoft::QLinearAdd com.microsoft::QLinearMul", since=1, form=13)
def qlinear_binary(
    op: Op,
    a: Value,
    a_scale: Value,
    a_zero_point: Value | None,
    b: Value,
    b_scale: Value,
    b_zero_point: Value | None,
    c_scale: Value,
    c_zero_point: Value | None,
) -> Value:
    """Both operands are dequantised, added or multiplied, and the result is quantised.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/quantization_defs.cc. Bit for bit.
    """
    left = dequantized(op, a, a_scale, a_zero_point)
    right = dequantized(op, b, b_scale, b_zero_point)
    y = op.write(op.operator.removeprefix("QLinear"), left, right)
    return quantized(op, y, c_scale, c_zero_point, a)


@formula("com.microsoft::QLinearSigmoid com.microsoft::QLinearLeakyRelu", since=1, form=13, handed_on="alpha")
def qlinear_activation(
    op: Op,
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value | None,
    **settings: Any,
) -> Value:
    """The data is dequantised, given to Sigmoid or LeakyRelu, and quantised.

    Why equal: the kernel has a table of the 256 results. Bit for bit.
    """
    data = dequantized(op, x, x_scale, x_zero_point)
    y = op.write(op.operator.removeprefix("QLinear"), data, **settings)
    return quantized(op, y, y_scale, y_zero_point, x)


@formula("com.microsoft::QLinearSoftmax", since=1, form=13)
def qlinear_softmax(
    op: Op,
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value | None,
    *,
    axis: int = -1,
    opset: int,
) -> Value:
    """The data is dequantised, given to Softmax as the attribute `opset` has it, and quantised.

    What changes: for an `opset` below 13 the data is flattened before `axis`, and Softmax normalises all axes from there on.
    The scale of the result becomes 1 divided by a whole number, to which the kernel cuts its reciprocal.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/qlinear_softmax.cc. Bit for bit. The result follows the attribute
    `opset`, not the opset of the model. ONNX Runtime's optimiser follows the opset of the model. Its optimisation therefore
    changes the numbers of the original if the two differ.
    """
    data = dequantized(op, x, x_scale, x_zero_point)
    if opset < 13:
        y = op.Reshape(op.Softmax(op.Flatten(data, axis=axis), axis=-1), op.shape_of(x))
    else:
        y = op.Softmax(data, axis=axis)
    array = y_scale.constant
    scale = y_scale if array is None else op.constant(np.float32(1) / np.floor(np.float32(1) / array))
    return quantized(op, y, scale, y_zero_point, x)


@formula("com.microsoft::QLinearConcat", since=1, form=13)
def qlinear_concat(op: Op, y_scale: Value, y_zero_point: Value, *inputs: Value, axis: int) -> Value:
    """All inputs, which are triples of data, scale and zero point, are dequantised, joined, and quantised.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/quantization_defs.cc. Bit for bit.
    """
    triples = [inputs[start : start + 3] for start in range(0, len(inputs), 3)]
    y = op.Concat(*(dequantized(op, *triple) for triple in triples), axis=axis)
    return quantized(op, y, y_scale, y_zero_point, inputs[0])


@formula("com.microsoft::QLinearWhere", since=1, form=13)
def qlinear_where(
    op: Op,
    condition: Value,
    x: Value,
    x_scale: Value,
    x_zero_point: Value,
    y: Value,
    y_scale: Value,
    y_zero_point: Value,
    z_scale: Value,
    z_zero_point: Value,
) -> Value:
    """Both branches are quantised anew by scale and zero point of the result, which is chosen from them.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/qlinear_where.cc. Bit for bit.
    """
    branches = [
        quantized(op, dequantized(op, *branch), z_scale, z_zero_point, x)
        for branch in ((x, x_scale, x_zero_point), (y, y_scale, y_zero_point))
    ]
    return op.Where(condition, *branches)


@formula("com.microsoft::QLinearGlobalAveragePool", since=1, form=13, exactness=EQUIVALENT)
def qlinear_global_average_pool(
    op: Op,
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value | None,
    *,
    channels_last: int = 0,
) -> Value:
    """The data is dequantised, given to GlobalAveragePool, and quantised.

    Why equal: onnxruntime/core/mlas/lib/qlgavgpool.cpp multiplies the sum of the integers by one scale. Bit for bit where ONNX
    Runtime's optimiser makes a QLinearGlobalAveragePool of it again; else a mean between two steps may become the other one.
    """
    data = dequantized(op, x, x_scale, x_zero_point)
    y = by_channels(op, data, op.GlobalAveragePool, channels_last=channels_last)
    return quantized(op, y, y_scale, y_zero_point, x)


@formula(
    "com.microsoft::QLinearAveragePool", since=1, form=13, exactness=EQUIVALENT,
    handed_on=f"{WINDOWS} pads ceil_mode count_include_pad",
)  # fmt: skip
def qlinear_average_pool(
    op: Op,
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value | None,
    *,
    channels_last: int = 0,
    **windows: Any,
) -> Value:
    """The data is dequantised, given to AveragePool, divided by the scale, and rounded with the zero point.

    What changes: Div, Add, Round, Clip and Cast quantise the result. QuantizeLinear adds the zero point after it has rounded.
    It therefore rounds a mean half-way between two numbers differently, and means of two or four numbers often are.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/qlinear_pool.cc adds the zero point first. Bit for bit if AveragePool
    adds the rows of a window in order. ONNX Runtime does so from opset 19 on, or with optimisation. Otherwise single numbers
    may differ by one step.
    """
    data = dequantized(op, x, x_scale, x_zero_point)
    y = by_channels(op, data, partial(op.AveragePool, **windows), channels_last=channels_last)
    steps = y / scalar(op, y_scale)
    steps = steps if y_zero_point is None else steps + scalar(op, y_zero_point).cast(_T.FLOAT)
    dtype = x.need_dtype()
    ends = np.iinfo(np.uint8 if dtype == _T.UINT8 else np.int8)
    return op.Clip(op.Round(steps), float(ends.min), float(ends.max)).cast(dtype)


@formula("com.microsoft::QLinearReduceMean", since=1, form=13)
def qlinear_reduce_mean(
    op: Op,
    x: Value,
    x_scale: Value,
    x_zero_point: Value | None,
    y_scale: Value,
    y_zero_point: Value | None,
    *,
    axes: list[int] | None = None,
    keepdims: int = 1,
) -> Value:
    """The data is dequantised, averaged over axes, and quantised.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/quantization_defs.cc. ONNX Runtime has no kernel of it.
    """
    y = op.ReduceMean(dequantized(op, x, x_scale, x_zero_point), axes, keepdims=bool(keepdims))
    return quantized(op, y, y_scale, y_zero_point, x)


@formula("com.microsoft::QLinearConv", since=1, form=13, handed_on=f"{WINDOWS} dilations group pads")
def qlinear_conv(
    op: Op,
    x: Value,
    x_scale: Value,
    x_zero_point: Value,
    w: Value,
    w_scale: Value,
    w_zero_point: Value,
    y_scale: Value,
    y_zero_point: Value,
    b: Value | None,
    *,
    channels_last: int = 0,
    **windows: Any,
) -> Value:
    """It is QLinearConv of the standard, between Transposes if the last axis has the channels.

    Why equal: one kernel computes both. Bit for bit.
    """
    others = (x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b)
    return by_channels(
        op, x, lambda source: op.QLinearConv(source, *others, **windows), channels_last=channels_last
    )


@formula("com.microsoft::QGemm", since=1, form=13)
def qgemm(
    op: Op,
    a: Value,
    a_scale: Value,
    a_zero_point: Value | None,
    b: Value,
    b_scale: Value,
    b_zero_point: Value | None,
    c: Value | None,
    y_scale: Value | None,
    y_zero_point: Value | None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Value:
    """The integers are multiplied and summed as such, C is added, and the sum is scaled, and quantised if asked for.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/quant_gemm.cc. Bit for bit. The product stays one of integers, as
    runtimes round sums of floats, and some processors saturate.
    """
    left = op.Transpose(a, perm=[1, 0]) if transA else a
    right = op.Transpose(b, perm=[1, 0]) if transB else b
    product = op.MatMulInteger(left, right, *scalars(op, a_zero_point, b_zero_point))
    product = product if c is None else product + c
    scale = a_scale * b_scale if alpha == 1 else a_scale * b_scale * alpha
    result = product.cast(_T.FLOAT) * scale
    return result if y_scale is None else quantized(op, result, y_scale, y_zero_point, a)


@formula("com.microsoft::DynamicQuantizeMatMul", since=1, form=13)
def dynamic_quantize_matmul(
    op: Op, a: Value, b: Value, b_scale: Value, b_zero_point: Value | None, bias: Value | None
) -> Value:
    """A is quantised by DynamicQuantizeLinear, the integers are multiplied, and the product is scaled.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/quantization_defs.cc. Bit for bit.
    """
    q, scale, zero_point = op.several("DynamicQuantizeLinear", 3, a)
    product = op.MatMulInteger(q, b, *scalars(op, zero_point, b_zero_point))
    y = product.cast(_T.FLOAT) * (scale * b_scale)
    return y if bias is None else y + bias


@formula("com.microsoft::MatMulIntegerToFloat", since=1, form=13)
def matmul_integer_to_float(
    op: Op,
    a: Value,
    b: Value,
    a_scale: Value,
    b_scale: Value,
    a_zero_point: Value | None,
    b_zero_point: Value | None,
    bias: Value | None,
) -> Value:
    """The integers are multiplied, and the product is scaled.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/quantization_defs.cc. Bit for bit.
    """
    dtype = a_scale.need_dtype()
    scale = a_scale.wide() * b_scale.wide()
    product = op.MatMulInteger(a, b, *scalars(op, a_zero_point, b_zero_point))
    y = product.cast(_T.FLOAT) * scale
    return (y if bias is None else y + bias.wide()).cast(dtype)


@formula("com.microsoft::QuantizeLinear", since=1, form=21)
def quantize_linear(
    op: Op, x: Value, y_scale: Value, y_zero_point: Value | None, *, axis: int | None = None
) -> Value:
    """It is QuantizeLinear of the standard, of the whole tensor if no axis is given.

    Why equal: one kernel computes both. Bit for bit.
    """
    if axis is None:
        return op.QuantizeLinear(x, *scalars(op, y_scale, y_zero_point))
    return op.QuantizeLinear(x, y_scale, y_zero_point, axis=axis)


@formula("com.microsoft::DequantizeLinear", since=1, form=21)
def dequantize_linear(
    op: Op, x: Value, x_scale: Value, x_zero_point: Value | None, *, axis: int | None = None
) -> Value:
    """It is DequantizeLinear of the standard, of the whole tensor if no axis is given.

    Why equal: one kernel computes both. Bit for bit.
    """
    if axis is None:
        return dequantized(op, x, x_scale, x_zero_point)
    return op.DequantizeLinear(x, x_scale, x_zero_point, axis=axis)


@formula("com.microsoft::QEmbedLayerNormalization", since=1, form=17)
def q_embed_layer_normalization(
    op: Op, *inputs: Value | None, epsilon: float = 1e-12
) -> tuple[Value | None, ...]:
    """It is EmbedLayerNormalization of tables that are dequantised, each by its scale and zero point.

    What changes: scale and zero point of the five tables come after the inputs of EmbedLayerNormalization.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/qembed_layer_norm.cc.
    """
    from .normalization import embed_layer_normalization

    padded_inputs = [*inputs, *[None] * (18 - len(inputs))]
    tables = []
    for index in range(5):
        table, scale, zero_point = (
            padded_inputs[2 + index],
            padded_inputs[8 + index],
            padded_inputs[13 + index],
        )
        tables.append(table if table is None or scale is None else dequantized(op, table, scale, zero_point))
    result = embed_layer_normalization(
        op, padded_inputs[0], padded_inputs[1], *tables, padded_inputs[7], None, epsilon=epsilon
    )  # fmt: skip
    assert isinstance(result, tuple)
    return result[:2]
