"""Arithmetic and logic, written with other plain operators."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto

from onnx_migrate.engine.steps.decomposition_registry import decomposition
from onnx_migrate.rewrite.change_log import Exactness
from onnx_migrate.rewrite.lowering_rewriter import LoweringRewriter

from ..lowerings.building import cast, scalar
from ..lowerings.selecting import select
from .forms import become, is_float, number, sign

_BOOL = TensorProto.BOOL


@decomposition("Sum")
def total(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is a chain of Adds.

    What changes: Add for each input but one.

    Why equal: ONNX Runtime adds the inputs in their order. Bit for bit.
    """
    _chain(rw, "Add", list(node.input))


@decomposition("Mean", exactness=Exactness.EQUIVALENT)
def mean(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the sum of the inputs, divided by their number.

    What changes: Add for each input but one, and Div.

    Why equal: the text. 1.2e-7 seen.

    Limits: the element type must be known.
    """
    names = list(node.input)
    if len(names) == 1:
        become(rw, "Identity", names[0])
        return
    whole = names[0]
    for name in names[1:]:
        whole = rw.before("Add", [whole, name], hint="sum")
    become(rw, "Div", whole, number(rw, len(names), names[0]))


@decomposition("Max", "Min")
def extreme(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Elements are selected by a comparison.

    What changes: Less or Greater, Not, and a selection for each input but one. A NaN of the first input is kept by the
    comparison, which does not hold for it.

    Why equal: the text. Bit for bit, but for a NaN of another input than the first, which counts as missing.

    Limits: the element type must be known.
    """
    names = list(node.input)
    operator = "Less" if node.op_type == "Max" else "Greater"
    chosen = names[0]
    for name in names[1:]:
        keep = rw.before("Not", [rw.before(operator, [chosen, name])], hint="keep")
        chosen = select(rw, keep, chosen, name)
    become(rw, "Identity", chosen)


@decomposition("Neg")
def negation(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the product with -1.

    What changes: Mul.

    Why equal: bit for bit.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    become(rw, "Mul", x, scalar(rw, -1, x))


@decomposition("Abs")
def absolute(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the larger of X and -X.

    What changes: Neg and Max.

    Why equal: the text; only the sign of a 0 can differ, and of an unsigned integer nothing is written.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    if rw.numpy_type(x).kind in "ub":
        become(rw, "Identity", x)
        return
    become(rw, "Max", x, rw.before("Neg", [x]))


@decomposition("Sub")
def difference(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the sum with the product of the other input and -1.

    What changes: Mul and Add.

    Why equal: a - b = a + (-b). Bit for bit; integers wrap around alike.

    Limits: the element type must be known.
    """
    other = rw.input(1)
    minus = rw.before("Mul", [other, _minus_one(rw, other)], hint="minus")
    become(rw, "Add", rw.input(0), minus)


@decomposition("Reciprocal")
def reciprocal(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is 1 / X.

    What changes: Div.

    Why equal: the text. Bit for bit.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    become(rw, "Div", scalar(rw, 1, x), x)


@decomposition("Sqrt", exactness=Exactness.EQUIVALENT)
def root(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the power of 0.5.

    What changes: Pow.

    Why equal: the text; a power may be rounded otherwise, and is 0 for a -0. 1.2e-7 seen.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    become(rw, "Pow", x, number(rw, 0.5, x))


@decomposition("Ceil")
def ceil(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is -floor(-X).

    What changes: Neg, Floor and Neg.

    Why equal: an identity of both. Bit for bit.
    """
    become(rw, "Neg", rw.before("Floor", [rw.before("Neg", [rw.input(0)])]))


@decomposition("Floor")
def floor(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is -ceil(-X).

    What changes: Neg, Ceil and Neg.

    Why equal: an identity of both. Bit for bit.
    """
    become(rw, "Neg", rw.before("Ceil", [rw.before("Neg", [rw.input(0)])]))


@decomposition("Tan", exactness=Exactness.EQUIVALENT)
def tangent(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is sin(X) / cos(X).

    What changes: Sin, Cos and Div.

    Why equal: the definition. 2e-7 of the result seen.
    """
    x = rw.input(0)
    become(rw, "Div", rw.before("Sin", [x]), rw.before("Cos", [x]))


@decomposition("Sinh", "Cosh", exactness=Exactness.EQUIVALENT)
def hyperbolic(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is half the difference, or the sum, of exp(X) and exp(-X).

    What changes: Exp, Neg, Exp, Sub or Add, and Mul.

    Why equal: the definitions. Sinh loses digits near 0: 1.2e-7 seen, of results around 0. Both overflow above 88.7.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    operator = "Sub" if node.op_type == "Sinh" else "Add"
    parts = [rw.before("Exp", [x]), rw.before("Exp", [rw.before("Neg", [x])])]
    become(rw, "Mul", rw.before(operator, parts), number(rw, 0.5, x))


@decomposition("Asinh", "Acosh", exactness=Exactness.EQUIVALENT)
def inverse_hyperbolic(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the logarithm of |X| + sqrt(X² + 1), with the sign of X, or of X + sqrt(X² - 1).

    What changes: Mul, Add, Sqrt, Add and Log; of Asinh Abs, Div and Mul too.

    Why equal: the definitions. Asinh loses digits near 0: 1.2e-7 seen, of results around 0. X² overflows above 1.8e19.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    of_sine = node.op_type == "Asinh"
    size = rw.before("Abs", [x]) if of_sine else x
    square = rw.before("Mul", [x, x], hint="square")
    root = rw.before("Sqrt", [rw.before("Add", [square, number(rw, 1 if of_sine else -1, x)])])
    curve = rw.before("Log", [rw.before("Add", [size, root])])
    if of_sine:
        become(rw, "Mul", curve, sign(rw, x, size))
    else:
        become(rw, "Identity", curve)


@decomposition("Atanh", exactness=Exactness.EQUIVALENT)
def inverse_hyperbolic_tangent(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is half the logarithm of (1 + X) / (1 - X).

    What changes: Add, Sub, Div, Log and Mul.

    Why equal: the definition. It loses digits near 0: 1.2e-7 seen, of results around 0.

    Limits: the element type must be known.
    """
    x = rw.input(0)
    one = number(rw, 1, x)
    ratio = rw.before("Div", [rw.before("Add", [one, x]), rw.before("Sub", [one, x])], hint="ratio")
    become(rw, "Mul", rw.before("Log", [ratio]), number(rw, 0.5, x))


@decomposition("Xor")
def xor(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Two truth values differ where they are not equal.

    What changes: Equal and Not.

    Why equal: the truth table. Bit for bit.
    """
    become(rw, "Not", rw.before("Equal", list(node.input)))


@decomposition("Not")
def negated(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """A truth value is negated where it equals false.

    What changes: Equal.

    Why equal: the truth table. Bit for bit.
    """
    become(rw, "Equal", node.input[0], rw.constant(np.array(False), "false"))


@decomposition("Or")
def disjunction(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """One of two truth values holds where not both are false.

    What changes: Not of both, And, and Not.

    Why equal: the truth table. Bit for bit.
    """
    become(rw, "Not", rw.before("And", [rw.before("Not", [name]) for name in list(node.input)]))


@decomposition("And")
def conjunction(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Both truth values hold where their product is not 0.

    What changes: Cast to int32 of both, Mul, and Cast to bool.

    Why equal: the truth table. Bit for bit.
    """
    numbers = [cast(rw, name, TensorProto.INT32) for name in list(node.input)]
    product = rw.before("Mul", numbers, hint="product")
    become(rw, "Cast", product)
    rw.set("to", _BOOL)


@decomposition("Less", "Greater")
def order(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """Less and Greater are each other with the inputs exchanged.

    What changes: the operator, and the order of the inputs.

    Why equal: a < b where b > a. Bit for bit.
    """
    first, second = node.input
    become(rw, "Greater" if node.op_type == "Less" else "Less", second, first)


@decomposition("Clip")
def limits(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The larger of X and the lower limit, and the smaller of that and the upper one.

    What changes: Max and Min, for each limit that is given.

    Why equal: the text, for a lower limit above the upper one too. Bit for bit.

    Limits: the element type must be known below opset 11; below opset 8 Max does not broadcast, so it is refused there.
    """
    if rw.version < 8:
        rw.refuse("Max and Min do not broadcast below opset 8", code="no-equal")
    x = value = rw.input(0)
    largest = float(
        np.finfo(np.float32).max
    )  # below opset 11 a limit that is left out is this, also where X is infinite
    for index, name, operator, default in ((1, "min", "Max", -largest), (2, "max", "Min", largest)):
        given = rw.get(name, default) if rw.version < 11 else None
        bound = rw.input(index) if given is None else number(rw, given, x)
        if bound:
            value = rw.before(operator, [value, bound], hint="limited")
    become(rw, "Identity", value)


@decomposition("ArgMin")
def arg_min(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """The place of the minimum is that of the maximum of the negated values.

    What changes: Neg and ArgMax, with the same attributes.

    Why equal: -X is exact for floats, and its order reversed. Bit for bit.

    Limits: the element type must be known; integers are refused, whose least number has no opposite.
    """
    x = rw.input(0)
    if not is_float(rw, x):
        rw.refuse("ArgMin of integers has no equal by ArgMax", code="no-equal")
    rw.set_input(0, rw.before("Neg", [x]))
    rw.rename("ArgMax")


def _chain(rw: LoweringRewriter, operator: str, names: list[str]) -> None:
    """Let the node give the inputs, joined by a binary operator from the left."""
    if len(names) == 1:
        become(rw, "Identity", names[0])
        return
    value = names[0]
    for name in names[1:-1]:
        value = rw.before(operator, [value, name])
    become(rw, operator, value, names[-1])


def _minus_one(rw: LoweringRewriter, like: str) -> str:
    """Return -1; of unsigned integers the number that has the same effect on products."""
    kind = rw.numpy_type(like)
    return scalar(rw, -1, like) if kind.kind != "u" else scalar(rw, 2 ** (8 * kind.itemsize) - 1, like)


@decomposition("Div", exactness=Exactness.EQUIVALENT)
def quotient(node: onnx.NodeProto, rw: LoweringRewriter) -> None:
    """It is the product with the reciprocal, which is computed now where the divisor is a constant.

    What changes: Mul, and Reciprocal unless the divisor is a constant of up to 4096 elements.

    Why equal: a / b = a * (1 / b), rounded twice: 1.2e-7 of the result seen.

    Limits: the element type must be known; integers are refused. Where 1 / b is not a number that the type has, neither is the
    result.
    """
    first, second = rw.input(0), rw.input(1)
    if not is_float(rw, first):
        rw.refuse("a quotient of integers is no product", code="no-equal")
    known = rw.constant_value(second) if _is_small(rw, second) else None
    if known is not None and known.all():
        become(rw, "Mul", first, rw.constant((1 / known).astype(known.dtype), "reciprocal"))
        return
    become(rw, "Mul", first, rw.before("Reciprocal", [second]))


def _is_small(rw: LoweringRewriter, value: str) -> bool:
    shape = rw.shape(value)
    return (
        shape is not None
        and all(size is not None for size in shape)
        and math.prod(s or 0 for s in shape) <= 4096
    )
