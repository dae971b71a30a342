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
    """SwiGLU begins with opset 28, so Swish(A) * B replaces it.

    Why equal: this is the function body of SwiGLU.
    """
    return op.Swish(a, alpha=op.attribute("alpha")) * b


@formula("Swish", since=24)
def swish(op: Op, x: Value, *, alpha: float) -> Value:
    """Swish begins with opset 24, so X * Sigmoid(alpha * X) replaces it.

    Why equal: this is the function body of Swish, and runtimes run this body.
    """
    return x * op.Sigmoid(x if alpha == 1 else alpha * x)


@formula("Gelu", since=20, exactness=EQUIVALENT)
def gelu(op: Op, x: Value, *, approximate: str) -> Value:
    """Gelu begins with opset 20, so 0.5 * X * (1 + Erf(X / sqrt(2))) or the formula with Tanh replaces it.

    Why equal: both formulas are those of the standard's text, multiplied in the order of ONNX Runtime's kernel. With either
    formula, 200,000 values of float32 gave the same bits. Values of bfloat16 are computed in float32, since the type cannot
    represent the constants. For float16 this is also true of the formula with Tanh. ONNX Runtime has no kernel for float16.
    It computes the standard's function body, which has the same nodes.
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
    """Mish begins with opset 18, so X * Tanh(Softplus(X)) replaces it.

    Why equal: this is the function body of Mish, and runtimes run this body.
    """
    return x * op.Tanh(op.Softplus(x))


@formula("HardSwish", since=14)
def hard_swish(op: Op, x: Value) -> Value:
    """HardSwish begins with opset 14, so X * HardSigmoid(X) with an alpha of 1/6 replaces it.

    Why equal: this is the function body of HardSwish, and runtimes run this body.
    """
    return x * op.HardSigmoid(x, alpha=1 / 6, beta=0.5)


@formula("Celu", since=28, types=LostTypes.OWN)
def celu_28(op: Op, x: Value, *, alpha: float) -> Value:
    """Below opset 28 Celu supports only float32, so other types use alpha * Elu(X / alpha).

    Why equal: this is the function body of version 28.
    """
    if x.dtype in (TensorProto.FLOAT, None):
        return op.Celu(x, **op.attributes)
    return _scaled_elu(op, x, alpha)


@formula("Celu", since=12, exactness=EQUIVALENT)
def celu(op: Op, x: Value, *, alpha: float) -> Value:
    """Celu begins with opset 12, so alpha * Elu(X / alpha) replaces it.

    Why equal: for a positive alpha this is the function body of Celu. ONNX Runtime's kernel multiplies in another order:
    differences of 2.4e-7 were seen, and -0 for +0. For a negative alpha the body differs from the text. ONNX Runtime and
    onnx.reference compute the text, max(0, X) + min(0, alpha * (exp(X / alpha) - 1)). So onnx-migrate writes the text in that
    case.

    Limits: X / alpha overflows if X is larger than alpha times the largest float32.
    """
    return _scaled_elu(op, x, alpha)


def _scaled_elu(op: Op, x: Value, alpha: float) -> Value:
    if alpha == 0:
        op.refuse("attribute alpha is 0, and the operator divides X by it", code="invalid-node")
    if alpha < 0:
        return op.Max(x, 0) + op.Min(alpha * (op.Exp(x / alpha) - 1), 0)
    return alpha * op.Elu(x / alpha)


@formula("Relu", since=14, types=LostTypes.OWN)
def relu(op: Op, x: Value) -> Value:
    """Below opset 14 Relu supports only floats, so integers use Max(X, 0).

    Why equal: the text is max(0, x). The results are equal bit for bit.
    """
    return op.Relu(x) if x.is_float else op.Max(x, 0)


@formula("ThresholdedRelu", since=10)
def thresholded_relu(op: Op, x: Value, *, alpha: float) -> Value:
    """ThresholdedRelu begins with opset 10, so a selection returns 0 where X is not greater than `alpha`.

    Why equal: the text defines it so. NaN is not greater than anything and gives 0 in both. ONNX Runtime computes the same
    bits.
    """
    return op.select(~(x > alpha), 0, x)


@formula("Shrink", since=9)
def shrink(op: Op, x: Value, *, bias: float, lambd: float) -> Value:
    """Shrink begins with opset 9, so selections move X by `bias` towards 0, or return 0 near it.

    Why equal: the text moves each X that is further from 0 than `lambd`, and returns 0 for the others. ONNX Runtime computes
    the same bits.

    Limits: onnx-migrate refuses integers, because runtimes differ in the rounding of `bias`.
    """
    if x.need_dtype() not in FLOATS:
        op.refuse("Shrink of integers has no form below opset 9", code="no-equal")
    low, high = x < -op.constant(lambd, x), x > lambd
    inner = op.select(high, x - bias, 0)
    return op.select(low, x + bias, inner)


@formula("HardSigmoid", since=1, exactness=EQUIVALENT)
def hard_sigmoid(op: Op, x: Value, *, alpha: float, beta: float) -> Value:
    """HardSigmoid becomes alpha * X + beta, limited to 0 … 1.

    Why equal: the text defines it so. A runtime may fuse the product and the sum and round only once: the largest difference
    seen is 6e-8.
    """
    return op.Clip(x * alpha + beta, 0, 1)


@formula("Softplus", since=1, exactness=EQUIVALENT)
def softplus(op: Op, x: Value) -> Value:
    """Softplus becomes max(X, 0) + log(1 + exp(-|X|)).

    Why equal: this is log(1 + exp(X)). For a positive X, log(exp(X)) is added as X, so that nothing overflows. The
    largest difference measured is 1.2e-7 of the largest number or of 1.
    """
    rest = op.Log(op.Exp(-abs(x)) + 1)
    return op.Relu(x) + rest


@formula("Elu", since=1, exactness=EQUIVALENT)
def elu(op: Op, x: Value, *, alpha: float) -> Value:
    """Elu becomes max(X, 0) + alpha * (exp(min(X, 0)) - 1).

    Why equal: this is the text with both branches added, since one of them is 0. Near 0, exp(X) - 1 loses digits: the largest
    difference seen is 6e-8 of alpha.
    """
    return op.Relu(x) + _below_zero(op, x, alpha)


@formula("Selu", since=1, exactness=EQUIVALENT)
def selu(op: Op, x: Value, *, alpha: float, gamma: float) -> Value:
    """Selu becomes gamma * (max(X, 0) + alpha * (exp(min(X, 0)) - 1)).

    Why equal: this is the text with both branches added, since one of them is 0. The largest difference seen is 1.2e-7.
    """
    return (op.Relu(x) + _below_zero(op, x, alpha)) * gamma


def _below_zero(op: Op, x: Value, alpha: float) -> Value:
    """Return alpha * (exp(min(X, 0)) - 1)."""
    return (op.Exp(-op.Relu(-x)) - 1) * alpha


@formula("LeakyRelu", since=1, exactness=EQUIVALENT)
def leaky_relu(op: Op, x: Value, *, alpha: float) -> Value:
    """LeakyRelu becomes max(X, 0) - alpha * max(-X, 0).

    Why equal: one of both terms is 0, so only the sign of a 0 can differ.
    """
    below = op.Relu(-x) * alpha
    return op.Relu(x) - below


@formula("PRelu", since=1, exactness=EQUIVALENT)
def prelu(op: Op, x: Value, slope: Value) -> Value:
    """PRelu becomes max(X, 0) - slope * max(-X, 0).

    Why equal: one of both terms is 0, so only the sign of a 0 can differ.

    Limits: if the slope is infinite and X positive, the result is NaN. X must have a float type.
    """
    below = op.Relu(-x) * slope
    return op.Relu(x) - below


@formula("Softsign", since=1, exactness=EQUIVALENT)
def softsign(op: Op, x: Value) -> Value:
    """Softsign becomes X / (1 + |X|).

    Why equal: the text defines it so. The largest difference seen is 6e-8. Infinite X gives NaN in both.
    """
    return x / (abs(x) + 1)


@formula("Sigmoid", since=1, exactness=EQUIVALENT)
def sigmoid(op: Op, x: Value) -> Value:
    """Sigmoid becomes 1 / (1 + exp(-X)).

    Why equal: the text defines it so. For X below -88, exp(-X) overflows to infinity, and the result is 0 as it should be.
    The largest difference seen is 1.2e-7.
    """
    return 1 / (op.Exp(-x) + 1)


@formula("Tanh", since=1, exactness=EQUIVALENT)
def tanh(op: Op, x: Value) -> Value:
    """Tanh becomes 2 * Sigmoid(2 * X) - 1.

    Why equal: this identity holds for all X. It loses digits near 0: the largest difference seen is 2.4e-7, for results up to
    1.
    """
    return op.Sigmoid(x * 2) * 2 - 1


@formula("Erf", since=9, exactness=EQUIVALENT, without=True)
def erf(op: Op, x: Value) -> Value:
    """Erf becomes a polynomial and an exponential, which approximate it to 5e-7.

    Why equal: this is formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions. Its error is at most
    1.5e-7. The largest difference seen in float32 is 5e-7.
    """
    size = abs(x)
    t = 1 / (size * np.float32(0.3275911) + 1)
    total = op.constant(np.float32(1.061405429), x)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        total = total * t + np.float32(factor)
    total = total * t
    return (1 - total * op.Exp(-(x * x))) * op.sign(x, size)
