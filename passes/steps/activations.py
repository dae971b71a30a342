"""Activations: their formulas, for an older opset or a target that lacks them."""

from __future__ import annotations

import math

import numpy as np

from onnx_migrate.engine.steps.formula import (
    EQUIVALENT,
    FLOATS,
    LostTypes,
    Op,
    TensorProto,
    Value,
    formula,
)
from onnx_migrate.plugins import compatible

compatible("ThresholdedRelu", 10, reason="the operator was experimental and became part of the standard")


@formula("SwiGLU", since=28)
def swiglu(op: Op, a: Value, b: Value) -> Value:
    """SwiGLU begins with opset 28: it is Swish(A) * B.

    Why equal: it is the function body of SwiGLU.
    """
    return op.Swish(a, alpha=op.attribute("alpha")) * b


@formula("Swish", since=24)
def swish(op: Op, x: Value, *, alpha: float) -> Value:
    """Swish begins with opset 24: it is X * Sigmoid(alpha * X).

    Why equal: it is the function body of Swish, which is what runtimes run.
    """
    return x * op.Sigmoid(x if alpha == 1 else alpha * x)


@formula("Gelu", since=20, exactness=EQUIVALENT)
def gelu(op: Op, x: Value, *, approximate: str) -> Value:
    """Gelu begins with opset 20: it is 0.5 * X * (1 + Erf(X / sqrt(2))), or the formula with Tanh.

    Why equal: in bfloat16, and with Tanh in float16, it is computed in float32, since the constants are no half floats. Both
    formulas are those of the standard's text, multiplied in the order of ONNX Runtime's kernel: no bit differed in 200,000
    values of float32, with either formula. For float16 it has no kernel and computes the standard's function body, whose
    nodes these are.
    """
    if approximate not in ("none", "tanh"):
        op.refuse(f"attribute approximate is {approximate!r}, not 'none' or 'tanh'", code="invalid-node")
    dtype = x.need_dtype()
    of_body = dtype == TensorProto.FLOAT16 and approximate == "none"
    x = x if of_body else x.wide()
    if of_body:
        curve = op.Erf(x / op.Sqrt(op.constant(2, x)))
    elif approximate == "none":
        curve = op.Erf(x * math.sqrt(0.5))
    else:
        curve = op.Tanh(x * (x * (0.044715 * math.sqrt(2 / math.pi)) * x + math.sqrt(2 / math.pi)))
    shifted = curve + 1
    return (x * 0.5 * shifted).cast(dtype)


@formula("Mish", since=18)
def mish(op: Op, x: Value) -> Value:
    """Mish begins with opset 18: it is X * Tanh(Softplus(X)).

    Why equal: it is the function body of Mish, which is what runtimes run.
    """
    return x * op.Tanh(op.Softplus(x))


@formula("HardSwish", since=14)
def hard_swish(op: Op, x: Value) -> Value:
    """HardSwish begins with opset 14: it is X * HardSigmoid(X) with an alpha of 1/6.

    Why equal: it is the function body of HardSwish, which is what runtimes run.
    """
    return x * op.HardSigmoid(x, alpha=1 / 6, beta=0.5)


@formula("Celu", since=28, types=LostTypes.OWN)
def celu_28(op: Op, x: Value, *, alpha: float) -> Value:
    """Celu takes float32 alone: of other types it becomes alpha * Elu(X / alpha).

    Why equal: it is the function body of version 28.
    """
    if x.dtype in (TensorProto.FLOAT, None):
        return op.Celu(x, **op.attributes)
    return _scaled_elu(op, x, alpha)


@formula("Celu", since=12, exactness=EQUIVALENT)
def celu(op: Op, x: Value, *, alpha: float) -> Value:
    """Celu begins with opset 12: it is alpha * Elu(X / alpha).

    Why equal: it is the function body of Celu, for a positive alpha. ONNX Runtime's kernel multiplies otherwise: 2.4e-7 seen, and
    -0 for +0. For a negative alpha the body contradicts the text, max(0, X) + min(0, alpha * (exp(X / alpha) - 1)), which ONNX
    Runtime and onnx.reference compute, so the text is written.

    Limits: X / alpha overflows where X is larger than alpha times the largest float32.
    """
    return _scaled_elu(op, x, alpha)


def _scaled_elu(op: Op, x: Value, alpha: float) -> Value:
    if alpha == 0:
        op.refuse("attribute alpha is 0, by which X is divided", code="invalid-node")
    if alpha < 0:
        return op.Max(x, 0) + op.Min(alpha * (op.Exp(x / alpha) - 1), 0)
    return alpha * op.Elu(x / alpha)


@formula("Relu", since=14, types=LostTypes.OWN)
def relu(op: Op, x: Value) -> Value:
    """Relu takes floats alone: of integers it becomes Max(X, 0).

    Why equal: the text, max(0, x). Bit for bit.
    """
    return op.Relu(x) if x.is_float else op.Max(x, 0)


@formula("ThresholdedRelu", since=10)
def thresholded_relu(op: Op, x: Value, *, alpha: float) -> Value:
    """ThresholdedRelu begins with opset 10: 0 is selected where X is not greater than `alpha`.

    Why equal: the text; NaN is not greater than anything and gives 0 in both. Bit for bit in ONNX Runtime.
    """
    return op.select(~(x > alpha), 0, x)


@formula("Shrink", since=9)
def shrink(op: Op, x: Value, *, bias: float, lambd: float) -> Value:
    """Shrink begins with opset 9: X moved by `bias` towards 0, where it is further from it than `lambd`, else 0.

    Why equal: the text. Bit for bit in ONNX Runtime.

    Limits: integers are refused, for which runtimes differ in the rounding of `bias`.
    """
    if x.need_dtype() not in FLOATS:
        op.refuse("Shrink of integers has no form below opset 9", code="no-equal")
    low, high = x < -op.constant(lambd, x), x > lambd
    inner = op.select(high, x - bias, 0)
    return op.select(low, x + bias, inner)


@formula("HardSigmoid", since=1, exactness=EQUIVALENT)
def hard_sigmoid(op: Op, x: Value, *, alpha: float, beta: float) -> Value:
    """It is alpha * X + beta, limited to 0 … 1.

    Why equal: the text. A runtime may fuse the product and the sum, and then rounds once: 6e-8 seen.
    """
    return op.Clip(x * alpha + beta, 0, 1)


@formula("Softplus", since=1, exactness=EQUIVALENT)
def softplus(op: Op, x: Value) -> Value:
    """It is max(X, 0) + log(1 + exp(-|X|)).

    Why equal: log(1 + exp(X)) with exp(X) taken out of the logarithm where X is positive, so that nothing overflows. Measured:
    1.2e-7 of the largest number or 1.
    """
    rest = op.Log(op.Exp(-abs(x)) + 1)
    return op.Relu(x) + rest


@formula("Elu", since=1, exactness=EQUIVALENT)
def elu(op: Op, x: Value, *, alpha: float) -> Value:
    """It is max(X, 0) + alpha * (exp(min(X, 0)) - 1).

    Why equal: the text, with both branches added, of which one is 0. exp(X) - 1 loses digits near 0: 6e-8 of alpha seen.
    """
    return op.Relu(x) + _below_zero(op, x, alpha)


@formula("Selu", since=1, exactness=EQUIVALENT)
def selu(op: Op, x: Value, *, alpha: float, gamma: float) -> Value:
    """It is gamma * (max(X, 0) + alpha * (exp(min(X, 0)) - 1)).

    Why equal: the text, with both branches added, of which one is 0. 1.2e-7 seen.
    """
    return (op.Relu(x) + _below_zero(op, x, alpha)) * gamma


def _below_zero(op: Op, x: Value, alpha: float) -> Value:
    """Return alpha * (exp(min(X, 0)) - 1)."""
    return (op.Exp(-op.Relu(-x)) - 1) * alpha


@formula("LeakyRelu", since=1, exactness=EQUIVALENT)
def leaky_relu(op: Op, x: Value, *, alpha: float) -> Value:
    """It is max(X, 0) - alpha * max(-X, 0).

    Why equal: one of both terms is 0, so that only the sign of a 0 can differ.
    """
    below = op.Relu(-x) * alpha
    return op.Relu(x) - below


@formula("PRelu", since=1, exactness=EQUIVALENT)
def prelu(op: Op, x: Value, slope: Value) -> Value:
    """It is max(X, 0) - slope * max(-X, 0).

    Why equal: one of both terms is 0, so that only the sign of a 0 can differ.

    Limits: where the slope is infinite and X positive, the result is NaN. X has floats.
    """
    below = op.Relu(-x) * slope
    return op.Relu(x) - below


@formula("Softsign", since=1, exactness=EQUIVALENT)
def softsign(op: Op, x: Value) -> Value:
    """It is X / (1 + |X|).

    Why equal: the text; 6e-8 seen. Infinite X gives NaN in both.
    """
    return x / (abs(x) + 1)


@formula("Sigmoid", since=1, exactness=EQUIVALENT)
def sigmoid(op: Op, x: Value) -> Value:
    """It is 1 / (1 + exp(-X)).

    Why equal: the text. exp(-X) overflows to infinity for X below -88, where the result is 0 as it should be. 1.2e-7 seen.
    """
    return 1 / (op.Exp(-x) + 1)


@formula("Tanh", since=1, exactness=EQUIVALENT)
def tanh(op: Op, x: Value) -> Value:
    """It is 2 * Sigmoid(2 * X) - 1.

    Why equal: an identity of the two functions. It loses digits near 0: 2.4e-7 seen, of results up to 1.
    """
    return op.Sigmoid(x * 2) * 2 - 1


@formula("Erf", since=9, exactness=EQUIVALENT, without=True)
def erf(op: Op, x: Value) -> Value:
    """It is approximated by a polynomial and an exponential, to 5e-7.

    Why equal: formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions, whose error is at most 1.5e-7. In
    float32 5e-7 seen.
    """
    size = abs(x)
    t = 1 / (size * np.float32(0.3275911) + 1)
    total = op.constant(np.float32(1.061405429), x)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        total = total * t + np.float32(factor)
    total = total * t
    return (1 - total * op.Exp(-(x * x))) * op.sign(x, size)
