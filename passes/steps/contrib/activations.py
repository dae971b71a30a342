"""ONNX Runtime's activations (com.microsoft): the Gelus that its optimiser and its transformer tools write."""

from __future__ import annotations

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, Value, formula


@formula("com.microsoft::Gelu", since=1, form=20, exactness=EQUIVALENT)
def gelu(op: Op, x: Value) -> Value:
    """Gelu becomes the standard's Gelu.

    Why equal: the text of both is 0.5 * X * (1 + Erf(X / sqrt(2))).
    """
    return op.Gelu(x)


@formula("com.microsoft::BiasGelu", since=1, form=20, exactness=EQUIVALENT)
def bias_gelu(op: Op, x: Value, bias: Value) -> Value:
    """BiasGelu becomes Gelu of the sum with a bias.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/bert_defs.cc says so.
    """
    return op.Gelu(x + bias)


@formula("com.microsoft::FastGelu", since=1, form=20, exactness=EQUIVALENT)
def fast_gelu(op: Op, x: Value, bias: Value | None) -> Value:
    """FastGelu becomes Gelu by the formula with Tanh, of the sum with a bias if there is one.

    Why equal: the function body is in onnxruntime/core/graph/contrib_ops/bert_defs.cc. Its constants are those of the
    standard.
    """
    return op.Gelu(x if bias is None else x + bias, approximate="tanh")


@formula("com.microsoft::QuickGelu", since=1, direct=24, exactness=EQUIVALENT)
def quick_gelu(op: Op, x: Value, *, alpha: float = 1.702) -> Value:
    """QuickGelu becomes X * Sigmoid(alpha * X), which the standard calls Swish at opset 24.

    Why equal: this is the function body in onnxruntime/core/graph/contrib_ops/contrib_defs.cc. ONNX Runtime 1.32 has no
    kernel of Swish. It replaces Swish by its function body only at opset 24, and fails to load it at newer ones.
    """
    if op.version == 24:
        return op.Swish(x, alpha=float(alpha))
    return x * op.Sigmoid(x if alpha == 1 else x * alpha)


@formula("com.microsoft::ScaledSiLU", since=1, exactness=EQUIVALENT)
def scaled_silu(op: Op, x: Value, scale: Value | None, *, alpha: float = 1.0) -> Value:
    """ScaledSiLU becomes X times a scale, times the Sigmoid of that product.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/contrib_defs.cc says so.
    """
    scaled = x * (float(alpha) if scale is None else scale)
    return scaled * op.Sigmoid(scaled)


@formula("com.microsoft::BiasSplitGelu", since=1, form=20, exactness=EQUIVALENT)
def bias_split_gelu(op: Op, x: Value, bias: Value) -> Value:
    """BiasSplitGelu halves the sum with a bias along its last axis: the first half times Gelu of the second.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/diffusion_defs.cc says so. ONNX Runtime has no CPU kernel for
    it, so the result was compared with NumPy.
    """
    left, right = op.several("Split", 2, x + bias, axis=-1, num_outputs=2)
    return left * op.Gelu(right)


@formula("com.microsoft::BiasAdd", since=1)
def bias_add(op: Op, x: Value, bias: Value, skip: Value) -> Value:
    """BiasAdd becomes the sum of three values.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/diffusion_defs.cc says so. ONNX Runtime has no CPU kernel for
    it, so the result was compared with NumPy.
    """
    return x + bias + skip


@formula("com.microsoft::BiasSoftmax", since=1, form=13, exactness=EQUIVALENT)
def bias_softmax(op: Op, x: Value, bias: Value, *, axis: int = 1, is_inner_broadcast: int = 0) -> Value:
    """BiasSoftmax becomes Softmax of the sum with a bias, along the last axis.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/contrib_defs.cc says so. ONNX Runtime has no CPU kernel for it,
    so the result was compared with NumPy.

    Limits: onnx-migrate refuses a Softmax over several axes, and a bias that is repeated along inner axes.
    """
    if is_inner_broadcast or axis % (rank := x.need_rank()) != rank - 1:
        op.refuse("it normalises several axes, or repeats its bias along inner ones", code="no-equal")
    return op.Softmax(x + bias, axis=-1)


@formula("com.microsoft::GatedAdd", since=1)
def gated_add(op: Op, x: Value, y: Value, gate: Value) -> Value:
    """GatedAdd becomes X + Y * gate.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/contrib_defs.cc says so.
    """
    return x + y * gate


@formula("com.microsoft::LinearAttentionGate", since=1, exactness=EQUIVALENT)
def linear_attention_gate(
    op: Op, a: Value, dt_bias: Value, decay_scale: Value, b: Value | None
) -> tuple[Value, Value | None]:
    """The decay becomes a scaled Softplus of the sum with a bias, and beta the Sigmoid of the last input.

    Why equal: onnxruntime/contrib_ops/cpu/bert/linear_attention_gates.cc does the same. Half floats are computed in float32,
    like in the kernel.
    """
    dtype = a.need_dtype()
    decay = op.Softplus(a.wide() + dt_bias) * decay_scale
    return decay.cast(dtype), None if b is None else op.Sigmoid(b.wide()).cast(dtype)


@formula("com.microsoft::SampleOp", since=1)
@formula("MemcpyFromHost MemcpyToHost", since=1, without=True)
def copy(op: Op, x: Value) -> Value:
    """SampleOp becomes Identity.

    Why equal: it copies a value, for example between devices.
    """
    return op.Identity(x)
