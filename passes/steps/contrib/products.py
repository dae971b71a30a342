"""ONNX Runtime's fused products and convolutions (com.microsoft)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from onnx_migrate.engine.steps.formula import EQUIVALENT, Op, TensorProto, Value, formula

WINDOWS = "auto_pad kernel_shape strides"
"""The attributes that convolutions and pools pass on unchanged."""
_ACTIVATION = "activation_alpha activation_beta activation_gamma"
"""The attributes that an operator passes on to the activation after it, without their prefix."""


@formula("com.microsoft::FusedMatMul com.microsoft::TransposeMatMul", since=1)
def fused_matmul(
    op: Op,
    a: Value,
    b: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Value:
    """It is MatMul of matrices that are transposed if asked for, times `alpha`.

    What changes: transA and transB swap the last two axes; transBatchA and transBatchB move the first axis before the last one.
    A vector is not transposed.

    Why equal: the text and onnxruntime/core/providers/cpu/math/matmul.cc, MatMul<float>. Bit for bit.
    """
    return _product(op, a, b, alpha, (transA, transB), (transBatchA, transBatchB))


def _product(
    op: Op, a: Value, b: Value, alpha: float, swapped: tuple[int, int], batch: tuple[int, int]
) -> Value:
    product = _turned(op, a, swapped[0], batch[0]) @ _turned(op, b, swapped[1], batch[1])
    return product if alpha == 1 else product * alpha


def _turned(op: Op, value: Value, swapped: int, batch: int) -> Value:
    """Return a matrix, or a stack of them, with its last two axes swapped, its first moved before the last, or both."""
    if not (swapped or batch) or (rank := value.need_rank()) < 2:
        return value
    order = [*range(1, rank - 1), 0, rank - 1] if batch else list(range(rank))
    if swapped:
        order[-2:] = [order[-1], order[-2]]
    return op.Transpose(value, perm=order)


@formula("com.microsoft::FusedGemm", since=1, form=14, handed_on=_ACTIVATION)
def fused_gemm(
    op: Op,
    a: Value,
    b: Value,
    c: Value | None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    activation: str = "",
    **of_activation: Any,
) -> Value:
    """It is Gemm and the operator that `activation` names, whose attributes it has with a prefix.

    Why equal: onnxruntime/contrib_ops/cpu/fused_gemm.cc hands both to the kernels of these. Bit for bit.
    """
    y = op.Gemm(a, b, c, alpha=float(alpha), beta=float(beta), transA=transA, transB=transB)
    return _activated(op, y, activation, of_activation)


@formula("com.microsoft::FusedMatMulActivation", since=1, form=14, handed_on=f"{_ACTIVATION} activation_axis")
def fused_matmul_activation(
    op: Op,
    a: Value,
    b: Value,
    *,
    activation: str,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
    **of_activation: Any,
) -> Value:
    """It is FusedMatMul and the operator that `activation` names, whose attributes it has with a prefix.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/contrib_defs.cc.
    """
    y = _product(op, a, b, alpha, (transA, transB), (transBatchA, transBatchB))
    return _activated(op, y, activation, of_activation)


def _activated(op: Op, value: Value, activation: str, settings: dict[str, Any]) -> Value:
    parameters = {name.removeprefix("activation_"): parameter for name, parameter in settings.items()}
    return op.write(activation, value, **parameters) if activation else value


@formula(
    "com.microsoft::FusedConv", since=1, form=14, exactness=EQUIVALENT,
    handed_on=f"{WINDOWS} dilations group pads",
)  # fmt: skip
def fused_conv(
    op: Op,
    x: Value,
    w: Value,
    b: Value | None,
    z: Value | None,
    *,
    activation: str = "",
    activation_params: list[float] | None = None,
    **windows: Any,
) -> Value:
    """It is Conv, to which Z is added, and an activation.

    What changes: the activation gets the numbers of `activation_params`: LeakyRelu its alpha, Clip its ends, HardSigmoid alpha
    and beta.

    Why equal: onnxruntime/contrib_ops/cpu/fused_conv.cc and fused_activation.cc. Bit for bit but for the sum with Z.
    """
    y = op.Conv(x, w, b, **windows)
    y = y if z is None else y + z
    if not activation:
        return y
    if activation == "Clip":
        return op.Clip(y, *(activation_params or ()))
    if activation not in _ACTIVATIONS:
        op.refuse(f"its activation {activation!r} is not known", code="no-equal")
    numbers = map(float, activation_params or ())
    settings: dict[str, Any] = dict(zip(_ACTIVATIONS[activation], numbers, strict=False))
    return op.write(activation, y, **settings)


_ACTIVATIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("Relu", "Tanh", "Sigmoid", "HardSwish"), ()),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
}


@formula("com.microsoft::NhwcMaxPool", since=1, form=12, handed_on=f"{WINDOWS} dilations pads")
def nhwc_max_pool(op: Op, x: Value, *, ceil_mode: int = 0, **windows: Any) -> Value:
    """It is MaxPool between Transposes that move the channels from the last axis to the second and back.

    Why equal: onnxruntime/contrib_ops/cpu/quantization/nhwc_max_pool.cc. Bit for bit.
    """
    return by_channels(op, x, partial(op.MaxPool, **windows, ceil_mode=ceil_mode), channels_last=1)


def by_channels(op: Op, value: Value, write: Callable[[Value], Value], *, channels_last: int) -> Value:
    """Return `write(value)` with the channels in the second axis; with `channels_last` they move there and back."""
    if not channels_last:
        return write(value)
    rank = value.need_rank()
    y = write(op.Transpose(value, perm=[0, rank - 1, *range(1, rank - 1)]))
    return op.Transpose(y, perm=[0, *range(2, rank), 1])


@formula("com.microsoft::MatMulInteger16", since=1, form=9)
def matmul_integer16(op: Op, a: Value, b: Value) -> Value:
    """It is MatMul of int32.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/contrib_defs.cc: products of int16 are summed in 32 bits.
    """
    return a.cast(TensorProto.INT32) @ b.cast(TensorProto.INT32)


@formula("com.microsoft::CDist", since=1, form=13, exactness=EQUIVALENT)
def cdist(op: Op, a: Value, b: Value, *, metric: str = "sqeuclidean") -> Value:
    """The distance of each row of A and each row of B, or its square: the sum of the squared differences.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/contrib_defs.cc. The kernel computes the squares from a product of
    the matrices, which cancels if rows are close to each other.
    """
    if metric not in ("euclidean", "sqeuclidean"):
        op.refuse(f"its metric {metric!r} is neither euclidean nor sqeuclidean", code="no-equal")
    squares = op.ReduceSumSquare(op.Unsqueeze(a, [1]) - op.Unsqueeze(b, [0]), [2], keepdims=False)
    return op.Sqrt(squares) if metric == "euclidean" else squares


@formula("com.microsoft::GemmFastGelu", since=1, form=20, exactness=EQUIVALENT)
def gemm_fast_gelu(op: Op, x: Value, w: Value, bias: Value | None) -> Value:
    """It is MatMul, the sum with a bias, and Gelu by the formula with Tanh.

    Why equal: the text in onnxruntime/core/graph/contrib_ops/contrib_defs.cc. ONNX Runtime has no kernel of it for a processor,
    so that the result was compared with NumPy.
    """
    product = x @ w
    return op.Gelu(product if bias is None else product + bias, approximate="tanh")


@formula(
    "com.microsoft::ConvTransposeWithDynamicPads",
    since=1,
    handed_on=f"{WINDOWS} dilations group output_padding",
)
def conv_transpose_with_dynamic_pads(
    op: Op, x: Value, w: Value, pads: Value | None, b: Value | None, **windows: Any
) -> Value:
    """It is ConvTranspose, whose pads are an attribute.

    Why equal: onnxruntime/core/providers/cpu/nn/conv_transpose.cc is the kernel of both. Bit for bit.
    """
    constant_pads = None if pads is None else [int(pad) for pad in pads.need_constant("pads").reshape(-1)]
    return op.ConvTranspose(x, w, b, **windows, pads=constant_pads)


@formula("com.microsoft::CausalConvWithState", since=1, exactness=EQUIVALENT)
def causal_conv_with_state(
    op: Op,
    x: Value,
    w: Value,
    bias: Value | None,
    past: Value | None,
    *,
    activation: str = "none",
    ndim: int = 1,
    state_window: int = 0,
) -> tuple[Value, Value]:
    """A Conv of single channels computes the data after its past, or after zeros; the end of both is the new past.

    Why equal: onnxruntime/contrib_ops/cpu/bert/causal_conv_with_state.cc.

    Limits: one spatial axis, and no window of states.
    """
    if ndim != 1 or state_window:
        op.refuse("it has several spatial axes, or a window of states", code="no-equal")
    channels, _, kernel = w.need_static()
    if past is None:
        past = op.Expand(op.constant(0, x), op.Concat(op.size_of(x, 0), [channels, kernel - 1], axis=0))
    both = op.Concat(past, x, axis=2)
    y = op.Conv(both, w, bias, group=channels)
    y = y if activation == "none" else y * op.Sigmoid(y)
    state = op.write("Slice", both, op.size_of(x, 2), op.size_of(x, 2) + (kernel - 1), [2])
    return y, state


@formula("com.microsoft::MoE", since=1, form=20, exactness=EQUIVALENT)
def mixture_of_experts(
    op: Op,
    x: Value,
    router_probs: Value,
    fc1: Value,
    fc1_bias: Value | None,
    fc2: Value,
    fc2_bias: Value | None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    activation_type: str = "relu",
    k: int = 1,
    normalize_routing_weights: int = 0,
    swiglu_fusion: int = 0,
    swiglu_limit: float = math.inf,
) -> Value:
    """Each row goes through all experts, and the results of the `k` most probable ones are added by their probabilities.

    What changes: ONNX Runtime computes the experts that a row chooses; the new MatMuls compute all of them.

    Why equal: onnxruntime/contrib_ops/cpu/moe/moe_cpu.cc.
    """
    rows = x.reshape(1, -1, fc2.need_static()[1])
    best, chosen = op.several("TopK", 2, op.Softmax(router_probs, axis=-1), [k], axis=-1)
    best = best / op.ReduceSum(best, [1]) if normalize_routing_weights else best
    shares = op.ScatterElements(router_probs * 0, chosen, best, axis=1)
    inner = rows @ op.Transpose(fc1, perm=[0, 2, 1])
    inner = inner if fc1_bias is None else inner + op.Unsqueeze(fc1_bias, [1])
    if activation_type == "swiglu" and swiglu_fusion == 1:
        inner = _swiglu(op, inner, activation_alpha, activation_beta, swiglu_limit)
    elif activation_type in _OF_EXPERTS:
        inner = _OF_EXPERTS[activation_type](op, inner)
    else:
        op.refuse(f"its activation is {activation_type!r} in a form that no kernel computes", code="no-equal")
    expert_outputs = inner @ op.Transpose(fc2, perm=[0, 2, 1])
    expert_outputs = expert_outputs if fc2_bias is None else expert_outputs + op.Unsqueeze(fc2_bias, [1])
    weighted = expert_outputs * op.Unsqueeze(op.Transpose(shares, perm=[1, 0]), [2])
    return op.Reshape(op.ReduceSum(weighted, [0], keepdims=False), op.shape_of(x))


def _swiglu(op: Op, inner: Value, alpha: float, beta: float, limit: float) -> Value:
    """Return gates times their Sigmoid and values, which stand side by side."""
    pairs = inner.reshape(0, 0, -1, 2)
    gate, linear = (op.Squeeze(op.Slice(pairs, [index], [index + 1], [3]), [3]) for index in range(2))
    if math.isfinite(limit):
        gate, linear = op.Min(gate, limit), op.Clip(linear, -limit, limit)
    return gate * op.Sigmoid(gate * alpha) * (linear + beta)


_OF_EXPERTS: dict[str, Callable[[Op, Value], Value]] = {
    "relu": lambda op, value: op.Relu(value),
    "gelu": lambda op, value: op.Gelu(value, approximate="tanh"),
    "silu": lambda op, value: value * op.Sigmoid(value),
    "identity": lambda op, value: value,
}
