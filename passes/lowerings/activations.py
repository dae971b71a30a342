"""Activations: the formulas of those that an older opset does not have."""

from __future__ import annotations

import math

import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.lowering_registry import LostTypes, lowering
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from .building import cast, scalar
from .selecting import select

_T = TensorProto
_HALVES = (_T.FLOAT16, _T.BFLOAT16)


@lowering("SwiGLU", leaves=28)
def swiglu_28_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """SwiGLU begins with opset 28: it is Swish(A) * B.

    What changes: Swish with the same `alpha` computes the gate, and the node becomes a Mul.

    Why equal: it is the function body of SwiGLU.
    """
    alpha = rw.attribute("alpha")
    gate = rw.before("Swish", [rw.input(0)], hint="gate")
    if alpha is not None:
        rw.preceding[-1].attribute.append(alpha)
        rw.drop("alpha")
    rw.set_input(0, gate)
    rw.rename("Mul")


@lowering("Swish", leaves=24)
def swish_24_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Swish begins with opset 24: it is X * Sigmoid(alpha * X).

    What changes: the node becomes a Mul; an `alpha` of 1 is not multiplied.

    Why equal: it is the function body of Swish, which is what runtimes run.

    Limits: the element type must be known unless `alpha` is 1.
    """
    x = rw.input(0)
    alpha = rw.pop("alpha", 1.0)
    scaled = x if alpha == 1 else rw.before("Mul", [scalar(rw, alpha, x), x], hint="scaled")
    rw.rename("Mul")
    rw.set_input(1, rw.before("Sigmoid", [scaled]))


@lowering("Gelu", leaves=20, exactness=Exactness.EQUIVALENT)
def gelu_20_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Gelu begins with opset 20: it is 0.5 * X * (1 + Erf(X / sqrt(2))), or the formula with Tanh.

    What changes: Mul, Erf (or Tanh), Add and Mul in its place. The formula with Erf stays in float16; the other one, and both
    in bfloat16, are computed in float32 between Casts, since their constants are no half floats.

    Why equal: both formulas are those of the standard's text, multiplied in the order of ONNX Runtime's kernel: no bit
    differed in 200,000 values of float32, with either formula. For float16 it has no kernel and computes the standard's function
    body, whose nodes these are.

    Limits: the element type must be known.
    """
    approximate = rw.pop("approximate", "none")
    if approximate not in ("none", "tanh"):
        rw.refuse(f"attribute approximate is {approximate!r}, not 'none' or 'tanh'", code="invalid-node")
    dtype = rw.need_dtype(rw.input(0))
    of_body = dtype == _T.FLOAT16 and approximate == "none"
    narrow = dtype in _HALVES and not of_body
    x = cast(rw, rw.input(0), _T.FLOAT) if narrow else rw.input(0)

    def times(value: str, factor: float) -> str:
        return rw.before("Mul", [value, scalar(rw, factor, x)])

    if of_body:
        curve = rw.before("Erf", [rw.before("Div", [x, rw.before("Sqrt", [scalar(rw, 2, x)])])])
    elif approximate == "none":
        curve = rw.before("Erf", [times(x, math.sqrt(0.5))])
    else:
        squared = rw.before("Mul", [times(x, 0.044715 * math.sqrt(2 / math.pi)), x])
        inner = rw.before("Add", [squared, scalar(rw, math.sqrt(2 / math.pi), x)])
        curve = rw.before("Tanh", [rw.before("Mul", [x, inner])])
    shifted = rw.before("Add", [curve, scalar(rw, 1, x)])
    if narrow:
        product = rw.before("Mul", [times(x, 0.5), shifted])
        rw.rename("Cast")
        rw.set_input(0, product)
        rw.set("to", dtype)
    else:
        rw.rename("Mul")
        rw.set_input(0, times(x, 0.5))
        rw.set_input(1, shifted)


@lowering("Mish", leaves=18)
def mish_18_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Mish begins with opset 18: it is X * Tanh(Softplus(X)).

    What changes: Softplus and Tanh in front of the node, which becomes a Mul.

    Why equal: it is the function body of Mish, which is what runtimes run.
    """
    x = rw.input(0)
    rw.rename("Mul")
    rw.set_input(1, rw.before("Tanh", [rw.before("Softplus", [x])]))


@lowering("HardSwish", leaves=14)
def hard_swish_14_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """HardSwish begins with opset 14: it is X * HardSigmoid(X) with an alpha of 1/6.

    What changes: HardSigmoid in front of the node, which becomes a Mul.

    Why equal: it is the function body of HardSwish, which is what runtimes run.
    """
    x = rw.input(0)
    rw.rename("Mul")
    rw.set_input(1, rw.before("HardSigmoid", [x], alpha=1 / 6, beta=0.5))


@lowering("Celu", leaves=28, types=LostTypes.OWN)
def celu_28_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Celu takes float32 alone: of other types it becomes alpha * Elu(X / alpha).

    What changes: Div, Elu and Mul, unless the type is float32 or unknown.

    Why equal: it is the function body of version 28.
    """
    if rw.dtype(rw.input(0)) not in (_T.FLOAT, None):
        _scaled_elu(rw)


@lowering("Celu", leaves=12, exactness=Exactness.EQUIVALENT)
def celu_12_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Celu begins with opset 12: it is alpha * Elu(X / alpha).

    What changes: Div and Elu in front of the node, which becomes a Mul.

    Why equal: it is the function body of Celu. ONNX Runtime's kernel multiplies otherwise: 2.4e-7 seen, and -0 for +0.

    Limits: X / alpha overflows where X is larger than alpha times the largest float32.
    """
    _scaled_elu(rw)


def _scaled_elu(rw: LoweringRewriter) -> None:
    x = rw.input(0)
    alpha = rw.pop("alpha", 1.0)
    rw.rename("Mul")
    if alpha == 0:
        rw.refuse("attribute alpha is 0, by which X is divided", code="invalid-node")
    factor = scalar(rw, alpha, x)
    rw.set_input(0, factor)
    rw.set_input(1, rw.before("Elu", [rw.before("Div", [x, factor])]))


@lowering("Relu", leaves=14, types=LostTypes.OWN)
def relu_14_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Relu takes floats alone: of integers it becomes Max(X, 0).

    What changes: nothing for floats.

    Why equal: the text, max(0, x). Bit for bit.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    if rw.need_dtype(x) in (_T.FLOAT, _T.DOUBLE, *_HALVES):
        return
    rw.rename("Max")
    rw.set_input(1, scalar(rw, 0, x))


@lowering("ThresholdedRelu", leaves=10)
def thresholded_relu_10_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """ThresholdedRelu begins with opset 10: 0 is selected where X is not greater than `alpha`.

    What changes: Greater, Not and Where.

    Why equal: the text; NaN is not greater than anything and gives 0 in both. Bit for bit in ONNX Runtime.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    alpha = rw.get("alpha", 1.0)
    zeroed = rw.before("Not", [rw.before("Greater", [x, scalar(rw, alpha, x)])])
    rw.after("Identity", [select(rw, zeroed, scalar(rw, 0, x), x)], [rw.output(0)])
    rw.remove()


@lowering("Shrink", leaves=9)
def shrink_9_down(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Shrink begins with opset 9: X moved by `bias` towards 0, where it is further from it than `lambd`, else 0.

    What changes: Less, Greater, Add, Sub and two selections.

    Why equal: the text. Bit for bit in ONNX Runtime.

    Limits: the element type must be known; integers are refused, for which runtimes differ in the rounding of `bias`.
    """
    x = rw.input(0)
    if rw.need_dtype(x) not in (_T.FLOAT, _T.DOUBLE, *_HALVES):
        rw.refuse("Shrink of integers has no form below opset 9", code="no-equal")
    lambd, bias = (scalar(rw, rw.get(name, default), x) for name, default in (("lambd", 0.5), ("bias", 0.0)))
    low = rw.before("Less", [x, rw.before("Neg", [lambd])])
    high = rw.before("Greater", [x, lambd])
    inner = select(rw, high, rw.before("Sub", [x, bias]), scalar(rw, 0, x))
    result = select(rw, low, rw.before("Add", [x, bias]), inner)
    rw.after("Identity", [result], [rw.output(0)])
    rw.remove()
