"""Operators in the forms that exporters write: with and without what is optional, constant and computed shapes.

A form is one line of operator_forms.txt, `operator: inputs -> text of the node`, in opset 13 unless it says otherwise
(`@17`). `x[1,3,8,8]` is data of that shape, float32 unless a type follows, `x[1,3?]` data whose second dim is open; what
has a `=` is a constant, as `w=(4,3)` of random numbers, `s={1,-1}` of int64, `s={{1.0,2.0}}` of floats. `:2` before the node
gives the number of outputs. `$shape` and the others of `_COMPUTED` are values that are computed at run time from the shape of x,
as exporters write them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

from benchmarks.operator_grid import grid

__all__ = ["forms"]

Array = np.ndarray[Any, Any]

_FORMS = Path(__file__).with_suffix(".txt")

_UNARY = """Abs Acos Asin Atan Ceil Celu Cos Cosh Elu Erf Exp Floor Log Mish@18 Neg Reciprocal Relu Round Selu Sigmoid Sign Sin
Sinh Softplus Softsign Sqrt Tan Tanh ThresholdedRelu Shrink IsNaN Hardmax"""
_UNARY_SHAPES = ("[1,3,4,5]", "[2,3,4]", "[2,3]", "[5]", "[1,2,3,4,5]", "[]")
_BINARY = "Add Sub Mul Div Pow Max Min PRelu Equal Less Greater GreaterOrEqual LessOrEqual Mod"
_BINARY_SHAPES = (
    "x[2,3] y[2,3]", "x[1,3,4,5] y[1,3,4,5]", "x[1,3,4,5] y=2.5", "x[1,3,4,5] y=(1)", "x[1,3,4,5] y=(3,1,1)",
    "x[1,3,4,5] y=(1,3,1,1)", "x[2,3,4] y=(4)", "x[2,3] y=(3)", "y=2.5 x[2,3,4]", "y=(4) x[2,3,4]", "x[1,3,4,5] y[1,3,1,1]",
    "x[1,3,4,5] y[1,1,4,5]", "x[2,3,4] y[4]", "x[4] y[4]", "x[4] y=2.5", "x[2,1,4] y[1,3,4]", "x[1,2,3,4,5] y=(2,1,1,1)",
    "x[1,2,3,4,5] y[1,2,3,4,5]", "x[1,3,1,1] y[1,3,4,5]", "x[] y[]",
)  # fmt: skip
_REDUCE = "ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSum ReduceLogSumExp"
_REDUCED = (
    "<axes=[2,3]>",
    "<axes=[-1]>",
    "<axes=[1], keepdims=0>",
    "<axes=[2,3], keepdims=0>",
    "<axes=[1,2,3]>",
    "",
    "<keepdims=0>",
)
_REDUCED_SHAPES = ("[1,3,4,5]", "[2,3,4]", "[2,3,4]", "[1,3,4,5]", "[1,3,4,5]", "[2,3,4]", "[2,3]")
_SUMMED = ("a={2,3}", "a={-1}", "a={1}", "a={2,3}", "a={1,2,3}", "", "")
_LOGICAL = ("And", "Or", "Xor")


_POSITIVE = ("Log", "Sqrt", "Pow", "ReduceLogSum")
_COMPARED = ("Equal", "Less", "Greater", "GreaterOrEqual", "LessOrEqual", "ArgMax", "ArgMin")

_MORE = """Shape: x[2,3,4] -> Reshape(x, $shape)
Shape: x[1,3,4,5] -> Reshape(x, $shape)
Size: x[2,3,4] -> Div(x, $size)
ConstantOfShape: x[2,3] -> Add(x, $zeros)
ConstantOfShape: x[1,3,4,5] -> Add(x, $zeros)
Range: x[2,3] -> Add(x, $range)
InstanceNormalization: x[1,3,4,4] w=(3) b=(3) -> InstanceNormalization<epsilon=0.00001>(x, w, b)
InstanceNormalization: x[2,3,4,4] w=(3) b=(3) -> InstanceNormalization<epsilon=0.001>(x, w, b)
InstanceNormalization: x[1,3,2,4,4] w=(3) b=(3) -> InstanceNormalization<epsilon=0.00001>(x, w, b)
Resize: x[1,2,8,6] s={{1.0,1.0,0.5,0.5}} -> Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, , s)
Resize: x[1,2,8,6] s={1,2,4,3} -> Resize<mode="linear", coordinate_transformation_mode="align_corners">(x, , , s)
Resize: x[1,2,8,6] s={1,2,11,13} -> Resize<mode="linear", coordinate_transformation_mode="pytorch_half_pixel">(x, , , s)
ReduceMean: x[1,3,4,5] -> ReduceMean<axes=[-1,-2]>(x)
ReduceMean: x[1,3,4,5] -> ReduceMean<axes=[-2,-1], keepdims=0>(x)
ReduceMean: x[1,3,4,5] -> ReduceMean<axes=[-1,-2], keepdims=0>(x)
AveragePool: x[1,3,8,8] -> AveragePool<kernel_shape=[2,2], strides=[2,2], count_include_pad=1>(x)
AveragePool: x[1,3,8,8] -> AveragePool<kernel_shape=[2,2], strides=[2,2], ceil_mode=0, count_include_pad=1>(x)
Clip: x[2,3] lo=0.0 hi=inf() -> Clip(x, lo, hi)
Squeeze: x[3?,1] -> Squeeze(x)
Squeeze: x[1,3?,4] -> Squeeze(x)
Squeeze: x[3?,4,1] -> Squeeze(x)
Squeeze: x[1,2?,3,1] -> Squeeze(x)
Squeeze: x[2,1,3?,4] -> Squeeze(x)
Squeeze: x[3?,1] -> Relu($squeezed)
Squeeze: x[1,3?,4] -> Relu($squeezed)
Squeeze: x[3?,4,1] -> Relu($squeezed)
Squeeze: x[1,2?,3,1] -> Relu($squeezed)
Squeeze: x[2,1,3?,4] -> Relu($squeezed)
Squeeze: x[3?,1?] -> Relu($squeezed)
Squeeze: x[3?] -> Relu($squeezed)
Squeeze: x[1?,2?,1] -> Relu($squeezed)
Squeeze: x[1?,3,1,1] -> Relu($squeezed)
Squeeze: x[1?,2?,1,1] -> Relu($squeezed)
If: x[3?,1?] a={1} -> Relu($chosen)
If: x[2,1?,4] a={1} -> Relu($chosen)
If: x[2,3?,1?] a={1} -> Relu($chosen)
If: x[3,1?] a={1} c[]bool -> Relu($branch)
If: x[2,3?,1] a={2} c[]bool -> Relu($branch)
STFT: x[1?,64?] s=8 w=(16) -> @17 Abs($stft)
STFT: x[1,64?] s=8 w=(16) -> @17 Abs($stft)
STFT: x[1,64?,1] s=8 w=(16) -> @17 Abs($stft)
STFT: x[1?,64?,1] s=8 w=(16) -> @17 Abs($stft)
STFT: x[1,64] s=8 w=(16) -> @17 Abs($stft)
STFT: x[1,64,1] s=8 w=(16) -> @17 Abs($stft)
DequantizeLinear: x[1,3,4,4]int8 s=0.02 -> DequantizeLinear(x, s)
DequantizeLinear: x[1,3,4,4]int32 s=0.02 -> DequantizeLinear(x, s)
DequantizeLinear: x[2,4] w=int32(4,) s=0.02 -> Add(x, $dequantized)
DequantizeLinear: x[2,4] w=int8(4,) s=0.02 -> Add(x, $dequantized)
MatMulInteger: x[2,5]uint8 w=int8(5,3) -> MatMulInteger(x, w)
MatMulInteger: x[2,5]uint8 w=uint8(5,3) a=uint8(3) z=uint8(2) -> MatMulInteger(x, w, a, z)
MatMulInteger: x[2,5]uint8 w=int8(5,3) a=uint8(3) z=int8(2) -> MatMulInteger(x, w, a, z)
MatMulInteger: x[2,5]uint8 w=uint8(5,3) a=uint8(3) z=uint8(3,) -> MatMulInteger(x, w, a, z)
MatMulInteger: x[2,5]uint8 w=int8(5,3) a=uint8(3) z=int8(3,) -> MatMulInteger(x, w, a, z)
ConvInteger: x[1,3,8,8]uint8 w=uint8(4,3,3,3) a=uint8(3) z=uint8(2) -> ConvInteger(x, w, a, z)
ConvInteger: x[1,3,8,8]uint8 w=int8(4,3,3,3) a=uint8(3) z=int8(2) -> ConvInteger(x, w, a, z)
QLinearConv: x[1,3,8,8]uint8 w=uint8(4,3,3,3) a=uint8(3) z=uint8(2) s=0.5 t=2.0 -> QLinearConv(x, s, a, w, s, z, t, a)
QLinearConv: x[1,3,8,8]uint8 w=int8(4,3,3,3) a=uint8(3) z=int8(2) s=0.5 t=2.0 -> QLinearConv(x, s, a, w, s, z, t, a)"""

_OPENED = [
    "Conv", "ConvTranspose", "MaxPool", "AveragePool", "BatchNormalization", "GlobalAveragePool", "Softmax", "HardSigmoid",
    "HardSwish", "Clip", "Relu", "LeakyRelu", "Sigmoid", "Tanh", "Sqrt", "Add", "Sub", "Mul", "Div", "Pow", "Concat",
    "Transpose", "Resize", "MatMul", "Gemm", "Pad", "Slice", "Squeeze", "Unsqueeze", "Cast", "LayerNormalization",
    "ReduceMean", "Split", "Gather", "Flatten",
]  # fmt: skip
"""Operators whose forms are run with open dims, too: published models have an open batch, height and width, or length."""

_WINDOWS = """Conv: x[1,3,9,11] w=(4,3,3,3) b=(4) -> Conv<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,1]>(x, w, b)
Conv: x[1,4,9,11] w=(4,1,3,3) b=(4) -> Conv<kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,1], group=4>(x, w, b)
Conv: x[1,4,9,11] w=(4,1,3,5) b=(4) -> Conv<kernel_shape=[3,5], pads=[1,2,1,2], strides=[1,1], group=4>(x, w, b)
Conv: x[1,3,9,11] w=(4,3,3,1) -> Conv<kernel_shape=[3,1], pads=[1,0,1,0], strides=[1,2]>(x, w)
Conv: x[1,3,9,11] w=(4,3,1,1) b=(4) -> Conv<kernel_shape=[1,1], strides=[1,1]>(x, w, b)
Conv: x[1,3,12] w=(4,3,3) b=(4) -> Conv<kernel_shape=[3], pads=[1,1], strides=[2]>(x, w, b)
MaxPool: x[1,3,8,12] -> MaxPool<kernel_shape=[2,1], strides=[2,1], pads=[0,0,0,0]>(x)
MaxPool: x[2,3,8,12] -> MaxPool<kernel_shape=[2,2], strides=[2,2], pads=[0,0,0,0]>(x)
AveragePool: x[1,3,8,12] -> AveragePool<kernel_shape=[2,3], strides=[2,3], pads=[0,0,0,0]>(x)
HardSigmoid: x[1,3,4,5] -> HardSigmoid<alpha=0.16666667, beta=0.5>(x)
HardSigmoid: x[1,3,4,5] -> HardSigmoid<alpha=0.2, beta=0.5>(x)
HardSigmoid: x[1,3,1,1] -> HardSigmoid<alpha=0.16666667, beta=0.5>(x)
Mul: x[1,3,4,5] y[1,3,1,1] -> Mul(x, y)
Mul: y=(1) x[1,3,4,5] -> Mul(y, x)
Mul: x[2,3,4] y[2,3,4] -> Mul(x, y)
Mul: x[2,3,4] y[2,3,1] -> Mul(x, y)
Mul: x[2,3,4] y[2,1,1] -> Mul(x, y)"""

_PACKED = """DequantizeLinear: x[2,4] w=uint4(2,4) s=0.02 -> @21 Add(x, $dequantized)
DequantizeLinear: x[32,4] w=uint4(32,4) s=abs(2,4) -> @21 Add(x, $blocks)"""
"""Weights of 4 bits, of one scale and of one for each block: behind all others, whose names count them."""

_BRANCHES = (
    "If<then_branch = then () => (float[] d) { d = Squeeze(x, a) }, "
    "else_branch = other () => (float[] e) { e = Identity(x) }>"
)
"""Branches of which one drops an axis, as PyTorch writes a squeeze of an open dim."""

_COMPUTED = {
    "$shape": "$shape = Shape(x)",
    "$shape_y": "$shape_y = Shape(y)",
    "$flat": "$a = Shape(x) $i = Constant<value_ints=[0]>() $b = Gather($a, $i) $c = Constant<value_ints=[-1]>() "
    "$flat = Concat<axis=0>($b, $c)",
    "$len1": "$a = Shape(x) $i = Constant<value_ints=[1]>() $b = Gather($a, $i) $c = Constant<value_ints=[2]>() "
    "$len1 = Sub($b, $c)",
    "$len1_scalar": "$a = Shape(x) $i = Constant<value_int=1>() $len1_scalar = Gather($a, $i)",
    "$squeezed": "$squeezed = Squeeze(x)",
    "$pooled": "$pooled = MaxPool<kernel_shape=[1,1]>(x)",
    "$first": "$p = MaxPool<kernel_shape=[1,1]>(x) $i = Constant<value_ints=[0]>() $first = Gather<axis=0>($p, $i)",
    "$positive": "$z = Constant<value_float=0.0>() $positive = Greater(x, $z)",
    **{
        f"$paired_{name}": f"$paired_{name} = {name}(x, y)"
        for name in ("Add", "Sub", "Mul", "Div", "Max", "Equal", "Less", "Greater", "Mod")
    },
    "$dequantized": "$dequantized = DequantizeLinear(w, s)",
    "$blocks": "$blocks = DequantizeLinear<axis=0, block_size=16>(w, s)",
    "$stft": "$stft = STFT(x, s, w)",
    "$chosen": "$a = Shape(x) $i = Constant<value_int=1>() $b = Gather($a, $i) $c = Equal($b, $i) $chosen = "
    + _BRANCHES
    + "($c)",
    "$branch": "$branch = " + _BRANCHES + "(c)",
    "$size": "$a = Size(x) $size = Cast<to=1>($a)",
    "$zeros": "$a = Shape(x) $zeros = ConstantOfShape($a)",
    "$range": "$a = Shape(x) $i = Constant<value_int=1>() $b = Gather($a, $i) $c = Constant<value_int=0>() "
    "$d = Constant<value_int=1>() $e = Range($c, $b, $d) $range = Cast<to=1>($e)",
    "$pads": "$a = Shape(x) $b = Constant<value_ints=[1,2,3,4]>() $c = Sub($a, $b) $d = Constant<value_ints=[0,0,0,0]>() "
    "$pads = Concat<axis=0>($d, $c)",
    "$double": "$a = Shape(x) $s = Constant<value_ints=[0]>() $t = Constant<value_ints=[2]>() $e = Constant<value_ints=[4]>() "
    "$b = Slice($a, $s, $t) $c = Slice($a, $t, $e) $d = Mul($c, $t) $double = Concat<axis=0>($b, $d)",
}
"""The nodes that compute a value of this name from x."""

_LINE = re.compile(r"(\w+): (.*?) ?-> (?:@(\d+) )?(?::(\d) )?(.*)")
_INPUT = re.compile(r"(\w+)(?:\[([\d,?]*)\](\w*)|=(\S+))(?: |$)")
_RANDOM = re.compile(r"(abs|bool|uint4|u?int8|int32|)\(([\d,]+)\)")
_TYPED = re.compile(r"(uint8|int8|int32|int)\((\d+)\)")


def forms() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Array]]]:
    """Return each form as a name, a model and what it is fed. The outputs have no types yet."""
    rng = np.random.default_rng(0)
    lines = [("", line) for line in _lines()] + [("grid_", line) for line in grid()]
    for index, (kind, line) in enumerate(lines):
        match = _LINE.fullmatch(line)
        if not match:
            raise ValueError(f"not a form: {line}")
        operator, inputs, opset, outputs, node = match.groups()
        model, feeds = _model(inputs, node, int(opset or 13), int(outputs or 1), rng)
        for name, value in feeds.items():
            if value.dtype.kind == "f":
                feeds[name] = _within(operator, value)
        yield f"{kind}{operator}_{index:03}", model, feeds


def _within(operator: str, value: Array) -> Array:
    """Return data that tells the operator's results apart: equal values and halves, and nothing outside the domain."""
    if operator in _POSITIVE:
        return np.abs(value)
    if operator in _COMPARED:
        return np.asarray(np.round(value * 3), np.float32)
    return np.asarray(np.round(value * 5) / 2, np.float32) if operator == "Round" else value


def _lines() -> Iterator[str]:
    yield from _FORMS.read_text(encoding="utf-8").splitlines()
    for name in _UNARY.split():
        operator, _, opset = name.partition("@")
        for shape in _UNARY_SHAPES:
            yield f"{operator}: x{shape} -> {f'@{opset} ' if opset else ''}{operator}(x)"
    for operator in _BINARY.split():
        for inputs in _BINARY_SHAPES:
            x, y = "yx" if inputs.startswith("y") else "xy"
            attribute = "<fmod=1>" if operator == "Mod" else ""
            if operator != "PRelu" or x == "x":
                yield f"{operator}: {inputs} -> {operator}{attribute}({x}, {y})"
    for operator in _LOGICAL:
        yield f"{operator}: x[2,3]bool y[2,3]bool -> {operator}(x, y)"
        yield f"{operator}: x[2,3]bool y[3]bool -> {operator}(x, y)"
    yield "Not: x[2,3]bool -> Not(x)"
    for operator in _REDUCE.split():
        for shape, given, axes in zip(_REDUCED_SHAPES, _REDUCED, _SUMMED, strict=True):
            if operator == "ReduceSum":
                kept = "<keepdims=0>" if "keepdims" in given else ""
                yield f"{operator}: x{shape} {axes} -> {operator}{kept}(x{', a' if axes else ''})"
            else:
                yield f"{operator}: x{shape} -> {operator}{given}(x)"
    for operator in ("Sum", "Mean", "Max", "Min"):
        yield f"{operator}: x[2,3,4] y[2,3,4] z[2,3,4] -> {operator}(x, y, z)"
        yield f"{operator}: x[2,3,4] -> {operator}(x)"
    yield from _MORE.splitlines()
    yield from _WINDOWS.splitlines()
    for line in [*_FORMS.read_text(encoding="utf-8").splitlines(), *_WINDOWS.splitlines()]:
        operator, _, form = line.partition(": ")
        if operator in _OPENED and "->" in form and "@" not in form:
            yield from (f"{operator}: {opened}" for opened in _opened(form))
    yield from _PACKED.splitlines()


def _opened(form: str) -> Iterator[str]:
    """Yield a form with the first dim of its inputs open, with those from the third on, and with both."""
    inputs, arrow, node = form.partition(" ->")
    for first, rest in (("?", ""), ("", "?"), ("?", "?")):

        def opened(match: re.Match[str], first: str = first, rest: str = rest) -> str:
            dims = [dim for dim in match[1].split(",") if dim]
            marks = [first, "", *[rest] * len(dims)]
            return "[" + ",".join(dim + mark for dim, mark in zip(dims, marks, strict=False)) + "]"

        yield re.sub(r"\[([\d,]+)\]", opened, inputs) + arrow + node


def _model(
    inputs: str, node: str, opset: int, outputs: int, rng: np.random.Generator
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    feeds: dict[str, Array] = {}
    shapes: dict[str, list[int | None]] = {}
    constants: dict[str, Array] = {}
    for name, dims, kind, constant in _INPUT.findall(inputs):
        if constant:
            constants[name] = _constant(constant, rng)
        else:
            given = [dim for dim in dims.split(",") if dim]
            feeds[name] = _data([int(dim.rstrip("?")) for dim in given], kind or "float32", rng)
            shapes[name] = [None if dim.endswith("?") else int(dim) for dim in given]
    names = ", ".join(f"y{index}" for index in range(outputs))
    before = "".join(
        text + "\n" for name, text in _COMPUTED.items() if re.search(rf"{re.escape(name)}\b", node)
    )
    body = f"{before}{names} = {node}".replace("$", "computed_")
    body = re.sub(r", (?=,)", ', ""', body)
    text = f'<ir_version: 7, opset_import: ["": {opset}]> form () => () {{ {body} }}'
    model = parser.parse_model(text)
    model.graph.input.extend(_info(name, value, shapes[name]) for name, value in feeds.items())
    model.graph.output.extend(helper.make_empty_tensor_value_info(f"y{index}") for index in range(outputs))
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return model, feeds


def _info(name: str, value: Array, shape: list[int | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), shape)


def _data(dims: list[int], kind: str, rng: np.random.Generator) -> Array:
    if kind == "bool":
        return np.asarray(rng.integers(0, 2, dims), bool)
    if kind:
        wanted = np.dtype(kind)
        if wanted.kind in "iu":
            return np.asarray(rng.integers(0, 3, dims), wanted)
    return np.asarray(rng.uniform(0.1, 0.9, dims) * rng.choice([-1, 1], dims), kind)


def _constant(text: str, rng: np.random.Generator) -> Array:
    if text == "inf()":  # as a clamp without an upper bound is exported
        return np.array(np.inf, np.float32)
    if match := _TYPED.fullmatch(text):
        return np.array(int(match[2]), {"int": "int64"}.get(match[1], match[1]))
    if match := _RANDOM.fullmatch(text):
        kind, dims = match[1], [int(dim) for dim in match[2].split(",") if dim]
        if "int" in kind:
            return np.asarray(rng.integers(0, 9, dims), kind)
        value = rng.integers(0, 2, dims) if kind == "bool" else rng.uniform(0.1, 0.9, dims)
        return np.asarray(value, bool if kind == "bool" else np.float32)
    value = np.array(json.loads(text.replace("{", "[").replace("}", "]")))
    if value.dtype.kind == "f":
        return np.asarray(value[0] if value.ndim else value, np.float32)
    return np.asarray(value, np.int64)
