"""ONNX Runtime's normalizations (com.microsoft): with a residual, with embeddings, and the simplified ones."""

from __future__ import annotations

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Result, TensorProto, Value, formula

_NO_KERNEL = "output {} is read, which ONNX Runtime's kernel does not fill"


@formula("com.microsoft::SkipLayerNormalization", since=1, form=17, exactness=EQUIVALENT)
def skip_layer_normalization(
    op: Op,
    x: Value,
    skip: Value,
    gamma: Value,
    beta: Value | None,
    bias: Value | None,
    *,
    epsilon: float = 1e-12,
) -> Result:
    """It is LayerNormalization of the sum of its inputs, along the last axis.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/bert_defs.cc. Half floats compute in float32, as the kernel does.
    The kernel computes the variance as the mean of the squares less the square of the mean. That difference cancels if the mean
    is large; LayerNormalization does not cancel.
    """
    return _skipped(op, "LayerNormalization", x, skip, bias, gamma, beta, epsilon)


@formula("com.microsoft::SkipSimplifiedLayerNormalization", since=1, form=23, exactness=EQUIVALENT)
def skip_simplified_layer_normalization(
    op: Op, x: Value, skip: Value, gamma: Value, bias: Value | None, *, epsilon: float = 1e-12
) -> Result:
    """It is RMSNormalization of the sum of its inputs, along the last axis.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/bert_defs.cc. Half floats compute in float32, as the kernel does.
    """
    return _skipped(op, "RMSNormalization", x, skip, bias, gamma, None, epsilon)


def _skipped(
    op: Op,
    operator: str,
    x: Value,
    skip: Value,
    bias: Value | None,
    gamma: Value,
    beta: Value | None,
    epsilon: float,
) -> Result:
    for index in (1, 2):
        if op.is_read(index):
            op.refuse(_NO_KERNEL.format(index), code="no-equal")
    dtype = x.need_dtype()
    total = x.wide() + skip.wide()
    total = total if bias is None else total + bias.wide()
    scales = [gamma.wide(), *([] if beta is None else [beta.wide()])]
    result = op.write(operator, total, *scales, axis=-1, epsilon=float(epsilon)).cast(dtype)
    return result, None, None, total.cast(dtype) if op.is_read(3) else None


@formula("com.microsoft::LayerNormalization", since=1, form=17, exactness=EQUIVALENT)
def layer_normalization(
    op: Op,
    x: Value,
    gamma: Value,
    beta: Value | None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Result:
    """It is LayerNormalization of the standard.

    Why equal: ONNX Runtime has one kernel for both (onnxruntime/core/providers/cpu/nn/layer_norm_impl.cc).
    """
    count = len(op.rw.node.output)
    return op.several(
        "LayerNormalization", count, x, gamma, beta, axis=axis, epsilon=float(epsilon), stash_type=stash_type
    )


@formula(
    "SimplifiedLayerNormalization com.microsoft::SimplifiedLayerNormalization",
    since=1,
    form=23,
    without=True,
    exactness=EQUIVALENT,
)
def simplified_layer_normalization(
    op: Op, x: Value, gamma: Value, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Value:
    """It is RMSNormalization of the standard.

    Why equal: attributes and defaults are the same, and ONNX Runtime computes both with one kernel
    (onnxruntime/core/providers/cpu/nn/layer_norm_impl.cc).
    """
    if op.is_read(1):
        op.refuse("its output 1 is read, which RMSNormalization does not have", code="no-equal")
    return op.RMSNormalization(x, gamma, axis=axis, epsilon=float(epsilon), stash_type=stash_type)


@formula("com.microsoft::EmbedLayerNormalization", since=1, form=17, exactness=EQUIVALENT)
def embed_layer_normalization(
    op: Op,
    input_ids: Value,
    segment_ids: Value | None,
    words: Value,
    positions: Value,
    segments: Value | None,
    gamma: Value,
    beta: Value,
    mask: Value | None,
    position_ids: Value | None,
    *,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> Result:
    """It is LayerNormalization of the sum of the rows of tables: of words, positions and segments.

    What changes: a Gather for each table; without `position_ids` the first rows of the second. The mask index is the number of
    elements of the mask that are 1, of type int32, and 0 without a mask.

    Why equal: the kernel, onnxruntime/contrib_ops/cpu/bert/embed_layer_norm.cc.
    """
    where = position_ids if position_ids is not None else op.iota(op.size_of(input_ids, 1))
    total = op.Gather(words, input_ids) + op.Gather(positions, where)
    if segments is not None:
        total = total + op.Gather(segments, op.constant(0) if segment_ids is None else segment_ids)
    result = op.LayerNormalization(total, gamma, beta, axis=-1, epsilon=float(epsilon))
    index = None
    if op.is_read(1):
        counted = mask.cast(TensorProto.INT32) if mask is not None else input_ids.cast(TensorProto.INT32) * 0
        ones = counted if mask is None else op.Equal(counted, 1).cast(TensorProto.INT32)
        index = op.ReduceSum(ones, [1], keepdims=False)
    return result, index, total if op.is_read(2) else None


@formula("com.microsoft::GroupNorm", since=1, form=21, exactness=EQUIVALENT)
def group_norm(
    op: Op,
    x: Value,
    gamma: Value,
    beta: Value,
    *,
    epsilon: float = 1e-5,
    groups: int,
    activation: int,
    channels_last: int = 1,
) -> Value:
    """It is GroupNormalization with channels in the second axis, times its Sigmoid if `activation` is 1.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/diffusion_defs.cc. ONNX Runtime has no kernel of it for a
    processor, so that the result was compared with NumPy.
    """
    source = op.Transpose(x, perm=[0, 3, 1, 2]) if channels_last else x
    dtype = source.need_dtype()
    y = op.GroupNormalization(
        source.wide(), gamma.wide(), beta.wide(), epsilon=float(epsilon), num_groups=groups
    )
    y = y * op.Sigmoid(y) if activation else y
    y = y.cast(dtype)
    return op.Transpose(y, perm=[0, 2, 3, 1]) if channels_last else y


@formula("com.microsoft::SkipGroupNorm", since=1, form=21, exactness=EQUIVALENT)
def skip_group_norm(
    op: Op,
    x: Value,
    gamma: Value,
    beta: Value,
    skip: Value,
    bias: Value | None,
    *,
    epsilon: float = 1e-5,
    groups: int,
    activation: int,
    channels_last: int = 1,
) -> Result:
    """It is GroupNorm of the sum with a second value, which may have one number for each channel, and a bias.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/diffusion_defs.cc. ONNX Runtime has no kernel of it for a
    processor, so that the result was compared with NumPy.
    """
    if not channels_last:
        op.refuse(
            "its channels are in the second axis, and the position of its bias is not known", code="no-equal"
        )
    total = x + (op.Unsqueeze(skip, [1, 2]) if skip.need_rank() == 2 else skip)
    total = total if bias is None else total + bias
    y = group_norm(op, total, gamma, beta, epsilon=epsilon, groups=groups, activation=activation)
    assert isinstance(y, Value)
    return y, total


@formula("com.microsoft::GatedRMSNorm", since=1, form=23, exactness=EQUIVALENT)
def gated_rms_norm(op: Op, x: Value, scale: Value, gate: Value, *, epsilon: float = 1e-5) -> Value:
    """It is RMSNormalization of as many numbers as there are scales, times the gate and its Sigmoid.

    Why equal: onnxruntime/contrib_ops/cpu/bert/linear_attention_gates.cc. Half floats compute in float32, as the kernel does.
    """
    dtype, wide = x.need_dtype(), gate.wide()
    rows = x.wide().reshape(-1, scale.need_static()[0])
    y = op.RMSNormalization(rows, scale.wide(), axis=-1, epsilon=float(epsilon))
    return (op.Reshape(y, op.shape_of(x)) * (wide * op.Sigmoid(wide))).cast(dtype)
