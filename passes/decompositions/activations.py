"""Activations, written with the plain operators of their formulas."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.decomposition_registry import decomposition
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .forms import become, clip, negative, number, positive, sign


@decomposition("HardSigmoid", exactness=Exactness.EQUIVALENT)
def hard_sigmoid(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is alpha * X + beta, limited to 0 … 1.

    What changes: Mul, Add and Clip.

    Why equal: the text. A runtime may fuse the product and the sum, and then rounds once: 6e-8 seen.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    scaled = rw.before("Mul", [x, number(rw, rw.get("alpha", 0.2), x)], hint="scaled")
    shifted = rw.before("Add", [scaled, number(rw, rw.get("beta", 0.5), x)], hint="shifted")
    become(rw, "Identity", clip(rw, shifted, 0, 1))


@decomposition("Softplus", exactness=Exactness.EQUIVALENT)
def softplus(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is max(X, 0) + log(1 + exp(-|X|)).

    What changes: Relu, Abs, Neg, Exp, Add, Log and Add.

    Why equal: log(1 + exp(X)) with exp(X) taken out of the logarithm where X is positive, so that nothing overflows. Measured:
    1.2e-7 of the largest number or 1.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    small = rw.before("Exp", [rw.before("Neg", [rw.before("Abs", [x])])], hint="small")
    rest = rw.before("Log", [rw.before("Add", [small, number(rw, 1, x)])], hint="rest")
    become(rw, "Add", positive(rw, x), rest)


@decomposition("Elu", exactness=Exactness.EQUIVALENT)
def elu(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is max(X, 0) + alpha * (exp(min(X, 0)) - 1).

    What changes: Relu, Neg, Exp, Sub, Mul and Add.

    Why equal: the text, with both branches added, of which one is 0. exp(X) - 1 loses digits near 0: 6e-8 of alpha seen.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    become(rw, "Add", positive(rw, x), _below_zero(rw, x, rw.get("alpha", 1.0)))


@decomposition("Selu", exactness=Exactness.EQUIVALENT)
def selu(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is gamma * (max(X, 0) + alpha * (exp(min(X, 0)) - 1)).

    What changes: Relu, Neg, Exp, Sub, two Muls and Add.

    Why equal: the text, with both branches added, of which one is 0. 1.2e-7 seen.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    alpha, gamma = rw.get("alpha", 1.67326319217681884765625), rw.get("gamma", 1.05070102214813232421875)
    whole = rw.before("Add", [positive(rw, x), _below_zero(rw, x, alpha)], hint="whole")
    become(rw, "Mul", whole, number(rw, gamma, x))


@decomposition("LeakyRelu", exactness=Exactness.EQUIVALENT)
def leaky_relu(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is max(X, 0) - alpha * max(-X, 0).

    What changes: two Relus, Neg, Mul and Sub.

    Why equal: one of both terms is 0, so that only the sign of a 0 can differ.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    below = rw.before("Mul", [negative(rw, x), number(rw, rw.get("alpha", 0.01), x)], hint="below")
    become(rw, "Sub", positive(rw, x), below)


@decomposition("PRelu", exactness=Exactness.EQUIVALENT)
def prelu(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is max(X, 0) - slope * max(-X, 0).

    What changes: two Relus, Neg, Mul and Sub.

    Why equal: one of both terms is 0, so that only the sign of a 0 can differ.

    Limits: where the slope is infinite and X positive, the result is NaN. X has floats.
    """
    x, slope = rw.input(0), rw.input(1)
    below = rw.before("Mul", [negative(rw, x), slope], hint="below")
    become(rw, "Sub", positive(rw, x), below)


@decomposition("Softsign", exactness=Exactness.EQUIVALENT)
def softsign(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is X / (1 + |X|).

    What changes: Abs, Add and Div.

    Why equal: the text; 6e-8 seen. Infinite X gives NaN in both.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    become(rw, "Div", x, rw.before("Add", [rw.before("Abs", [x]), number(rw, 1, x)], hint="whole"))


@decomposition("Sigmoid", exactness=Exactness.EQUIVALENT)
def sigmoid(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is 1 / (1 + exp(-X)).

    What changes: Neg, Exp, Add and Div.

    Why equal: the text. exp(-X) overflows to infinity for X below -88, where the result is 0 as it should be. 1.2e-7 seen.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    one = number(rw, 1, x)
    whole = rw.before("Add", [rw.before("Exp", [rw.before("Neg", [x])]), one], hint="whole")
    become(rw, "Div", one, whole)


@decomposition("Tanh", exactness=Exactness.EQUIVALENT)
def tanh(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is 2 * Sigmoid(2 * X) - 1.

    What changes: Mul, Sigmoid, Mul and Sub.

    Why equal: an identity of the two functions. It loses digits near 0: 2.4e-7 seen, of results up to 1.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    two = number(rw, 2, x)
    curve = rw.before("Sigmoid", [rw.before("Mul", [x, two])])
    become(rw, "Sub", rw.before("Mul", [curve, two]), number(rw, 1, x))


@decomposition("Erf", exactness=Exactness.EQUIVALENT)
def erf(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is approximated by a polynomial and an exponential, to 5e-7.

    What changes: Abs, Mul, Add, Div and the terms of a polynomial of fifth degree in 1 / (1 + 0.3275911 |X|), times exp(-X²).

    Why equal: formula 7.1.26 of Abramowitz and Stegun, Handbook of Mathematical Functions, whose error is at most 1.5e-7. In
    float32 5e-7 seen.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    size = rw.before("Abs", [x])

    def constant(value: float) -> str:
        return number(rw, value, x)

    slope = rw.before("Add", [rw.before("Mul", [size, constant(0.3275911)]), constant(1)])
    t = rw.before("Div", [constant(1), slope], hint="t")
    total = constant(1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        total = rw.before("Add", [rw.before("Mul", [total, t]), constant(factor)], hint="term")
    total = rw.before("Mul", [total, t], hint="term")
    bell = rw.before("Exp", [rw.before("Neg", [rw.before("Mul", [x, x])])], hint="bell")
    value = rw.before("Sub", [constant(1), rw.before("Mul", [total, bell])], hint="value")
    become(rw, "Mul", value, sign(rw, x, size))


def _below_zero(rw: LoweringRewriter, x: str, alpha: float) -> str:
    """Return alpha * (exp(min(X, 0)) - 1)."""
    curve = rw.before("Exp", [rw.before("Neg", [negative(rw, x)])], hint="curve")
    shifted = rw.before("Sub", [curve, number(rw, 1, x)], hint="shifted")
    return rw.before("Mul", [shifted, number(rw, alpha, x)], hint="below")
