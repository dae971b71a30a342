"""Small models of each operator, in ONNX's text form, with the opsets whose form of the operator they have.

Every sample uses the attributes and inputs that its operator has in all of these opsets.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import onnx

from onnx_migrate.standard.ir_versions import minimal_ir_version
from tests import harness

__all__ = ["SAMPLES", "Sample", "read", "samples"]


@dataclass(frozen=True)
class Sample:
    """A graph's text without its name, valid from opset `first` to `last`."""

    text: str
    first: int = 1
    last: int = 99

    def model(self, opset: int) -> onnx.ModelProto:
        """Return the model at an opset."""
        ir_version = max(8, minimal_ir_version(opset))
        return harness.model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> sample {self.text}')


def samples(operator: str, opset: int) -> list[Sample]:
    """Return the samples of an operator that are valid at an opset."""
    return [sample for sample in SAMPLES.get(operator, ()) if sample.first <= opset <= sample.last]


_UNARY = """Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor GlobalAveragePool
GlobalLpPool GlobalMaxPool HardSigmoid HardSwish Hardmax Identity  LRN LeakyRelu Log LogSoftmax
LpNormalization MeanVarianceNormalization Mish Neg NonZero Reciprocal Relu Round Selu Shape Sigmoid Sign Sin
Sinh Size Softmax Softplus Softsign Sqrt Tan Tanh ThresholdedRelu Transpose"""
_OUTPUT = {"Size": "int64", "Shape": "int64[N]", "NonZero": "int64[4,N]"}
_ATTRIBUTES = {
    "Celu": "<alpha = 0.5>",
    "Elu": "<alpha = 0.5>",
    "HardSigmoid": "<alpha = 0.3, beta = 0.4>",
    "Hardmax": "<axis = 3>",
    "LRN": "<size = 3, alpha = 0.1, beta = 0.7, bias = 1.5>",
    "LeakyRelu": "<alpha = 0.2>",
    "LogSoftmax": "<axis = 3>",
    "LpNormalization": "<axis = 1, p = 1>",
    "MeanVarianceNormalization": "<axes = [0, 2]>",
    "Selu": "<alpha = 1.5, gamma = 1.1>",
    "Softmax": "<axis = 3>",
    "ThresholdedRelu": "<alpha = 0.5>",
    "Transpose": "<perm = [2, 0, 3, 1]>",
    "GlobalLpPool": "<p = 1>",
}
_REQUIRED = {"LRN"}

_ARITHMETIC = "Add Sub Mul Div Pow PRelu"
_COMPARISON = "Equal Greater GreaterOrEqual Less LessOrEqual"
_REDUCTION = "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare"


def _unary(operator: str) -> list[Sample]:
    output = _OUTPUT.get(operator, "float[A,B,C,D]")
    written = [f"{{ y = {operator} {_ATTRIBUTES[operator]} (x) }}"] if operator in _ATTRIBUTES else []
    plain = [] if operator in _REQUIRED else [f"{{ y = {operator} (x) }}"]
    return [Sample(f"(float[2,3,4,5] x) => ({output} y) {body}") for body in plain + written]


def _reduction(operator: str) -> list[Sample]:
    head = "(float[2,3,4] x) => (float[A,B,C] y, float[D,E] z, float[F,G,H] w)"
    body = "{{ y = {0} <axes = [1]> (x) z = {0} <axes = [0], keepdims = 0> (x) w = {0} (x) }}"
    given = "{{ y = {0} (x, one) z = {0} <keepdims = 0> (x, zero) w = {0} (x) }}"
    last = 12 if operator == "ReduceSum" else 17
    constants = "<int64[1] one = {1}, int64[1] zero = {0}>"
    return [
        Sample(f"{head} {body.format(operator)}", last=last),
        Sample(f"{head} {constants} {given.format(operator)}", first=last + 1),
    ]


def _recurrent(operator: str, gates: int) -> Sample:
    rows = f"float[2,{gates * 5},4] w, float[2,{gates * 5},5] r, float[2,{gates * 10}] b"
    call = f'{operator} <hidden_size = 5, direction = "bidirectional", clip = 2.0> (x, w, r, b, lengths)'
    head = f"(float[3,2,4] x, {rows}) => (float[A,B,C,D] y, float[E,F,G] h)"
    return Sample(f"{head} <int32[2] lengths = {{3, 2}}> {{ y, h = {call} }}")


_OTHERS = """
Max Mean Min Sum: (float[2,3] a, float[2,3] b, float[2,3] c) => (float[2,3] y) { y = OP (a, b, c) }
Max Mean Min Sum 8..: (float[2,3] a, float[3] b, float c) => (float[2,3] y) { y = OP (a, b, c) }
ArgMax ArgMin: (float[2,3,4] x) => (int64[2,1,4] y, int64[3,4] z) { y = OP <axis = 1> (x) z = OP <keepdims = 0> (x) }
Attention: (float[1,2,3,4] q, float[1,2,5,4] k, float[1,2,5,4] v) => (float[A,B,C,D] y) { y = Attention
    <is_causal = 1> (q, k, v) }
Attention: (float[1,3,8] q, float[1,5,4] k, float[1,5,4] v, float[3,5] m) => (float[A,B,C] y) { y = Attention
    <q_num_heads = 4, kv_num_heads = 2, softcap = 2.0> (q, k, v, m) }
AveragePool: (float[1,2,7,6] x) => (float[A,B,C,D] y) { y = AveragePool <kernel_shape = [3, 2], strides = [2, 1]> (x) }
AveragePool 7..: (float[1,2,7,6] x) => (float[A,B,C,D] y, float[E,F,G,H] z, float[I,J,K,L] w)
    { y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x) z = AveragePool
    <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x) w = AveragePool
    <kernel_shape = [3, 3], strides = [2, 2], auto_pad = "SAME_UPPER"> (x) }
AveragePool 10..: (float[1,2,7,6] x) => (float[A,B,C,D] y, float[E,F,G,H] z) { y = AveragePool
    <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (x) z = AveragePool
    <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1], ceil_mode = 1> (x) }
BatchNormalization 7..: (float[2,3,4] x, float[3] s, float[3] b, float[3] m) => (float[2,3,4] y) <float[3] v = {0.5, 1, 2}>
    { y = BatchNormalization <epsilon = 0.01> (x, s, b, m, v) }
Bernoulli: (float[9] x) => (float[9] y) { p = Sigmoid (x) y = Bernoulli <seed = 3.0> (p) }
BitShift: (uint8[9] x, uint8[9] n) => (uint8[9] y, uint8[9] z) <uint8 seven = {7}> { m = Min (n, seven)
    y = BitShift <direction = "LEFT"> (x, m) z = BitShift <direction = "RIGHT"> (x, m) }
Cast 6..: (float[9] x) => (int64[9] y) { y = Cast <to = 7> (x) }
Cast 6..: (float[9] x) => (double[9] y) { y = Cast <to = 11> (x) }
Cast 6..: (int64[9] x) => (float[9] y) { y = Cast <to = 1> (x) }
Cast 6..: (float[9] x) => (uint8[9] y) { z = Abs (x) y = Cast <to = 2> (z) }
Cast 19..: (float[9] x) => (float[9] y) { z = Cast <to = 17> (x) y = Cast <to = 1> (z) }
Cast 19..: (float[9] x) => (float[9] y) <float s = {1000}> { l = Mul (x, s) z = Cast <to = 19, saturate = 0> (l)
    y = Cast <to = 1> (z) }
CastLike: (float[9] x, int64[1] t) => (int64[9] y) { y = CastLike (x, t) }
CastLike: (float[9] x, float16[1] t) => (float16[9] y) { y = CastLike (x, t) }
Clip 6..10: (float[2,9] x) => (float[2,9] y) { y = Clip <min = -1.0, max = 2.0> (x) }
Clip 11..: (float[2,9] x) => (float[2,9] y) <float a = {-1}, float b = {2}> { y = Clip (x, a, b) }
Clip 11..: (float[2,9] x) => (float[2,9] y) <float b = {2}> { y = Clip (x, , b) }
Compress: (float[3,2] x) => (float[A,B] y) <bool[3] c = {1, 0, 1}> { y = Compress <axis = 0> (x, c) }
Compress: (float[3,2] x) => (float[N] y) <bool[5] c = {1, 0, 1, 1, 0}> { y = Compress (x, c) }
Concat: (float[2,3] a, float[2,1] b) => (float[A,B] y) { y = Concat <axis = 1> (a, b) }
Concat: (float[2,3] a, float[4,3] b) => (float[A,B] y) { y = Concat <axis = 0> (a, b) }
Constant: (float[2] x) => (float[2] y) { c = Constant <value = float[2] {1.5, -2}> () y = Sum (x, c) }
Constant 12..: (float[2] x) => (float[2] y) { c = Constant <value_floats = [1.5, -2.0]> () y = Add (x, c) }
Constant 12..: (int64[2] x) => (int64[2] y) { c = Constant <value_int = 7> () y = Add (x, c) }
Constant 12..: (int64[2] x) => (string[2] y) { y = Constant <value_strings = ["a", "b"]> () }
ConstantOfShape: (float[2,3] x) => (float[A,B] y) { s = Shape (x) y = ConstantOfShape (s) }
ConstantOfShape: (float[2,3] x) => (int64[A,B] y) { s = Shape (x) y = ConstantOfShape <value = int64[1] {7}> (s) }
Conv: (float[1,4,6,5] x, float[2,2,3,3] w, float[2] b) => (float[A,B,C,D] y) { y = Conv
    <kernel_shape = [3, 3], strides = [2, 1], pads = [1, 0, 1, 2], group = 2> (x, w, b) }
Conv: (float[1,1,7,6] x, float[2,1,3,3] w) => (float[A,B,C,D] y, float[E,F,G,H] z, float[I,J,K,L] v) { y = Conv
    <dilations = [2, 1]> (x, w) z = Conv <auto_pad = "SAME_LOWER", strides = [2, 2]> (x, w) v = Conv
    <auto_pad = "VALID"> (x, w) }
ConvTranspose: (float[1,2,4,3] x, float[2,3,3,3] w, float[3] b) => (float[A,B,C,D] y) { y = ConvTranspose
    <strides = [2, 2], pads = [1, 0, 1, 2], output_padding = [1, 0]> (x, w, b) }
ConvTranspose: (float[1,2,4,3] x, float[2,3,3,3] w) => (float[A,B,C,D] y) { y = ConvTranspose
    <strides = [2, 2], output_shape = [9, 8], dilations = [1, 1]> (x, w) }
CumSum: (float[2,5] x) => (float[2,5] y, float[2,5] z) <int64 one = {1}> { y = CumSum <exclusive = 1> (x, one)
    z = CumSum <reverse = 1> (x, one) }
DeformConv: (float[1,2,4,4] x, float[3,2,2,2] w, float[1,8,3,3] o, float[3] b, float[1,4,3,3] m)=> (float[A,B,C,D] y)
    { y = DeformConv (x, w, o, b, m) }
DepthToSpace: (float[1,8,2,3] x) => (float[A,B,C,D] y) { y = DepthToSpace <blocksize = 2> (x) }
DepthToSpace 11..: (float[1,8,2,3] x) => (float[A,B,C,D] y) { y = DepthToSpace <blocksize = 2, mode = "CRD"> (x) }
DequantizeLinear: (uint8[2,3] x) => (float[2,3] y) <float scale = {0.05}, uint8 zero = {128}>
    { y = DequantizeLinear (x, scale, zero) }
DequantizeLinear: (int8[2,3] x, float s) => (float[2,3] y) { y = DequantizeLinear (x, s) }
DequantizeLinear 13..: (int8[2,3] x) => (float[2,3] y) <float[3] scale = {0.05, 0.1, 0.2}, int8[3] zero = {0, 1, -1}>
    { y = DequantizeLinear <axis = 1> (x, scale, zero) }
Det: (float[2,3,3] x) => (float[2] y) { y = Det (x) }
Dropout 7..11: (float[2,3] x) => (float[2,3] y) { y = Dropout <ratio = 0.3> (x) }
Dropout 12..: (float[2,3] x) => (float[2,3] y, bool[2,3] m) <float r = {0.3}> { y, m = Dropout (x, r) }
Einsum: (float[2,3] a, float[3,4] b) => (float[A,B] y) { y = Einsum <equation = "ij,jk->ki"> (a, b) }
Expand: (float[3,1] x) => (float[A,B,C] y) <int64[3] s = {2, 1, 4}> { y = Expand (x, s) }
EyeLike: (float[3,4] x) => (float[3,4] y) { y = EyeLike <k = 1> (x) }
EyeLike: (int32[3,4] x) => (double[3,4] y) { y = EyeLike <dtype = 11> (x) }
Flatten: (float[2,3,4] x) => (float[A,B] y, float[C,D] z) { y = Flatten (x) z = Flatten <axis = 2> (x) }
Flatten: (float[2,3,4] x) => (float[A,B] y) { y = Flatten <axis = 0> (x) }
Gather: (float[4,3] x) => (float[A,B,C] y) <int64[2,1] i = {3, 0}> { y = Gather (x, i) }
Gather: (float[4,3] x) => (float[A,B] y) <int32[2] i = {2, 0}> { y = Gather <axis = 1> (x, i) }
GatherElements: (float[2,3] x) => (float[2,2] y) <int64[2,2] i = {2, -1, 0, 1}> { y = GatherElements <axis = 1> (x, i) }
GatherND: (float[2,3,4] x) => (float[A,B] y) <int64[3,2] i = {0, 1, 1, 2, -1, 0}> { y = GatherND (x, i) }
GatherND 12..: (float[2,3] x) => (float[N] y) <int64[2,1] i = {2, 0}> { y = GatherND <batch_dims = 1> (x, i) }
Gemm: (float[2,3] a, float[3,4] b, float[2,4] c) => (float[2,4] y) { y = Gemm <alpha = 0.5> (a, b, c) }
Gemm 7..: (float[3,2] a, float[4,3] b, float[4] c) => (float[2,4] y) { y = Gemm
    <alpha = 0.5, beta = 2.0, transA = 1, transB = 1> (a, b, c) }
GridSample: (float[1,2,4,5] x, float[1,3,3,2] g) => (float[A,B,C,D] y, float[E,F,G,H] z) { k = Tanh (g)
    y = GridSample <align_corners = 1, mode = "nearest", padding_mode = "border"> (x, k) z = GridSample
    <padding_mode = "reflection"> (x, k) }
If 7..: (float[2,3] x, bool c) => (float[2,3] y) { y = If (c) < then_branch = yes () => (float[2,3] p)
    { p = Add (x, x) }, else_branch = no () => (float[2,3] q) { q = Mul (x, x) }> }
InstanceNormalization 6..: (float[2,3,4] x, float[3] s, float[3] b) => (float[2,3,4] y)
    { y = InstanceNormalization (x, s, b) }
LayerNormalization: (float[2,3,4] x, float[4] s, float[4] b) => (float[2,3,4] y) { y = LayerNormalization
    <axis = -1, epsilon = 0.001> (x, s, b) }
Loop 7..: (float[2] x) => (float[2] y, float[A,B] z) <int64 n = {3}, bool c = {1}> { y, z = Loop (n, c, x)
    <body = b (int64 i, bool go, float[2] a) => (bool on, float[2] next, float[2] each) { on = Identity (go)
    next = Add (a, x) each = Mul (a, a) }> }
IsInf: (float[9] x) => (bool[9] y, bool[9] z) { w = Ceil (x) i = Reciprocal (w) y = IsInf (i) z = IsInf
    <detect_negative = 0> (i) }
IsNaN: (float[9] x) => (bool[9] y) { l = Log (x) y = IsNaN (l) }
LpPool 2..: (float[1,2,6,7] x) => (float[A,B,C,D] y, float[E,F,G,H] z) { y = LpPool
    <kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]> (x) z = LpPool
    <kernel_shape = [2, 2], p = 1, auto_pad = "SAME_UPPER"> (x) }
MatMul: (float[2,1,3,4] a, float[5,4,2] b) => (float[A,B,C,D] y) { y = MatMul (a, b) }
MaxPool: (float[1,2,7,6] x) => (float[A,B,C,D] y, float[E,F,G,H] z) { y = MaxPool
    <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x) z = MaxPool
    <kernel_shape = [3, 2], auto_pad = "SAME_LOWER", strides = [2, 2]> (x) }
MaxPool 8..: (float[1,2,7,6] x) => (float[A,B,C,D] y, int64[E,F,G,H] i) { y, i = MaxPool
    <kernel_shape = [3, 3], storage_order = 1> (x) }
MaxPool 10..: (float[1,2,7,6] x) => (float[A,B,C,D] y) { y = MaxPool
    <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1,dilations = [2, 1]> (x) }
MaxRoiPool: (float[1,2,6,6] x) => (float[A,B,C,D] y) <float[2,5] r = {0, 0, 0, 3, 4, 0, 1, 2, 5, 5}>
    { y = MaxRoiPool <pooled_shape = [2, 2], spatial_scale = 1.0> (x, r) }
MaxUnpool: (float[1,1,4,4] x) => (float[A,B,C,D] y) { p, i = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)
    y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (p, i) }
Mod: (int32[9] a) => (int32[9] y, int32[9] z) <int32 b = {-4}> { y = Mod (a, b) z = Mod <fmod = 1> (a, b) }
Mod: (float[2,9] a, float[9] b) => (float[2,9] y) { y = Mod <fmod = 1> (a, b) }
Multinomial: (float[2,4] x) => (int32[2,9] y) { y = Multinomial <sample_size = 9, seed = 3.0> (x) }
Multinomial: (float[2,4] x) => (int64[2,9] y) { y = Multinomial <sample_size = 9, seed = 3.0, dtype = 7> (x) }
NegativeLogLikelihoodLoss: (float[3,5,2] x, float[5] w) => (float y, float[3,2] z) <int64[3,2] t = {0, 4, 2, 1, 3, 3}>
    { y = NegativeLogLikelihoodLoss <ignore_index = 3> (x, t, w) z = NegativeLogLikelihoodLoss <reduction = "none"> (x, t) }
NonMaxSuppression: (float[1,2,4] s) => (int64[N,3] y)
    <float[1,4,4] b = {0, 0, 2, 2, 0, 0, 2, 1.5, 3, 3, 4, 4, 1, 1, 3, 3},int64 n = {3}, float iou = {0.5},
    float low = {-9}> { y = NonMaxSuppression (b, s, n, iou, low) }
OneHot: (float[2] v) => (float[A,B] y, float[C,D] z) <int64[3] i = {0, 4, 2}, int64 d = {5}> { y = OneHot (i, d, v)
    z = OneHot <axis = 0> (i, d, v) }
Optional: (float[2,3] x) => (float[2,3] y, bool h) { o = Optional (x) y = OptionalGetElement (o) h = OptionalHasElement (o) }
OptionalGetElement: (float[2,3] x) => (float[2,3] y, bool h) { o = Optional (x) y = OptionalGetElement (o)
    h = OptionalHasElement (o) }
OptionalHasElement: (float[2,3] x) => (float[2,3] y, bool h) { o = Optional (x) y = OptionalGetElement (o)
    h = OptionalHasElement (o) }
Pad 11..: (float[2,3] x) => (float[A,B] y, float[C,D] z, float[E,F] w)<int64[4] p = {1, 0, 2, -1}, int64[4] q = {1, 2, 0, 1},
    float v = {1.5}> { y = Pad (x, p, v) z = Pad <mode = "edge"> (x, q) w = Pad <mode = "reflect"> (x, q) }
QLinearMatMul: (uint8[2,3] a, uint8[3,4] b) => (uint8[2,4] y)<float s = {0.05}, uint8 z = {3}>
    { y = QLinearMatMul (a, s, z, b, s, z, s, z) }
QuantizeLinear: (float[2,3] x) => (uint8[2,3] y) <float scale = {0.05}, uint8 zero = {128}>
    { y = QuantizeLinear (x, scale, zero) }
QuantizeLinear: (float[2,3] x) => (uint8[2,3] y) <float s = {0.5}> { y = QuantizeLinear (x, s) }
QuantizeLinear 13..: (float[2,3] x) => (int8[2,3] y) <float[3] scale = {0.05, 0.1, 0.2}, int8[3] zero = {0, 1, -1}>
    { y = QuantizeLinear <axis = 1> (x, scale, zero) }
RandomNormal: () => (float[3,4] y) { y = RandomNormal <shape = [3, 4], mean = 1.0, seed = 3.0> () }
RandomNormalLike: (float[3,4] x) => (float[3,4] y) { y = RandomNormalLike <scale = 2.0, seed = 3.0> (x) }
RandomUniform: () => (float[3,4] y) { y = RandomUniform <shape = [3, 4], low = -1.0, seed = 3.0> () }
RandomUniformLike: (float[3,4] x) => (float[3,4] y) { y = RandomUniformLike <high = 2.0, seed = 3.0> (x) }
Range: (float u) => (float[N] y) <float a = {1.5}, float b = {7}, float d = {0.5}> { y = Range (a, b, d) }
Range: (float u) => (int64[N] y) <int64 a = {9}, int64 b = {-7}, int64 d = {-3}> { y = Range (a, b, d) }
Reshape 5..: (float[2,3,4] x) => (float[A,B] y) <int64[2] s = {0, -1}> { y = Reshape (x, s) }
Reshape 14..: (float[0,3] x) => (float[A,B] y) <int64[2] s = {0, 5}> { y = Reshape <allowzero = 1> (x, s) }
Resize 13..: (float[1,1,4,5] x) => (float[A,B,C,D] y, float[E,F,G,H] z) <float[4] s = {1, 1, 1.5, 2.5}>
    { y = Resize (x, , s) z = Resize <mode = "cubic", coordinate_transformation_mode = "align_corners"> (x, , s) }
ReverseSequence: (float[4,3] x) => (float[4,3] y, float[4,3] z) <int64[3] n = {4, 1, 2}, int64[4] m = {3, 2, 1, 3}>
    { y = ReverseSequence (x, n) z = ReverseSequence <batch_axis = 0, time_axis = 1> (x, m) }
RoiAlign: (float[1,2,6,6] x) => (float[A,B,C,D] y) <float[2,4] r = {0, 0, 3.5, 4, 1, 2, 5, 5}, int64[2] b = {0, 0}>
    { y = RoiAlign <output_height = 2, output_width = 3, sampling_ratio = 2, mode = "avg"> (x, r, b) }
Scan 9..: (float[2] x, float[3,2] s) => (float[2] y, float[A,B] z) { y, z = Scan (x, s)
    <num_scan_inputs = 1,body = b (float[2] a, float[2] e) => (float[2] next, float[2] each) { next = Add (a, e)
    each = Mul (next, x) }> }
Scatter ScatterElements: (float[2,3] x, float[2,2] u) => (float[2,3] y) <int64[2,2] i = {2, 0, 1, 2}> { y = OP
    <axis = 1> (x, i, u) }
ScatterND: (float[4,2] x, float[2,2] u) => (float[4,2] y) <int64[2,1] i = {3, 1}> { y = ScatterND (x, i, u) }
ScatterND 16..: (float[4,2] x, float[2,2] u) => (float[4,2] y) <int64[2,1] i = {3, 3}> { y = ScatterND
    <reduction = "add"> (x, i, u) }
Slice ..9: (float[5,6] x) => (float[A,B] y) { y = Slice <axes = [1], starts = [1], ends = [-1]> (x) }
Slice 10..: (float[5,6] x) => (float[A,B] y, float[C,D] z)
    <int64[1] s = {5}, int64[1] e = {-9}, int64[1] a = {-1},int64[1] t = {-2}, int64[2] o = {1, 2}, int64[2] p = {4, 9}>
    { y = Slice (x, s, e, a, t) z = Slice (x, o, p) }
SoftmaxCrossEntropyLoss: (float[3,5] x, float[5] w) => (float y, float[3] z, float[3,5] l) <int64[3] t = {0, 4, 2}>
    { y = SoftmaxCrossEntropyLoss <ignore_index = 4> (x, t, w)z, l = SoftmaxCrossEntropyLoss <reduction = "none"> (x, t) }
SpaceToDepth: (float[1,2,4,6] x) => (float[A,B,C,D] y) { y = SpaceToDepth <blocksize = 2> (x) }
Split 2..12: (float[5,2] x) => (float[A,B] y, float[C,D] z) { y, z = Split <axis = 0, split = [2, 3]> (x) }
Split 13..: (float[5,2] x) => (float[A,B] y, float[C,D] z) <int64[2] s = {2, 3}> { y, z = Split (x, s) }
SplitToSequence: (float[5,2] x) => (seq(float[A,B]) y, seq(float[C]) z) <int64[2] s = {2, 3}>
    { y = SplitToSequence (x, s) z = SplitToSequence <axis = 1, keepdims = 0> (x) }
Squeeze ..12: (float[1,3,1] x) => (float[A,B] y, float[C] z) { y = Squeeze <axes = [2]> (x) z = Squeeze (x) }
Squeeze 13..: (float[1,3,1] x) => (float[A,B] y) <int64[1] a = {-1}> { y = Squeeze (x, a) }
Tile 6..: (float[2,3] x) => (float[A,B] y) <int64[2] n = {2, 3}> { y = Tile (x, n) }
TopK 10..: (float[3,6] x) => (float[A,B] y, int64[C,D] i) <int64[1] k = {3}> { y, i = TopK (x, k) }
TopK 11..: (float[6,3] x) => (float[A,B] y, int64[C,D] i) <int64[1] k = {2}> { y, i = TopK <axis = 0, largest = 0> (x, k) }
Unique: (int64[9] x) => (int64[A] y, int64[B] i, int64[C] j, int64[D] n) { y, i, j, n = Unique (x) }
Unique: (float[3,2] x) => (float[A,B] y) { d = Concat <axis = 0> (x, x) y = Unique <axis = 0> (d) }
Unsqueeze ..12: (float[2,3] x) => (float[A,B,C,D] y) { y = Unsqueeze <axes = [0, 3]> (x) }
Unsqueeze 13..: (float[2,3] x) => (float[A,B,C,D] y) <int64[2] a = {0, -1}> { y = Unsqueeze (x, a) }
Where: (bool[2,1] c, float[2,3] a, float[3] b) => (float[2,3] y) { y = Where (c, a, b) }
"""
"""Operators, the opsets of the form where it has not always been the same, and a sample, in which OP is each of several."""


def read(lines: str) -> Iterator[tuple[str, Sample]]:
    """Yield operators and samples of a text like `_OTHERS`."""
    for line in re.sub(r"\n +", " ", lines).strip().split("\n"):
        names, _, text = line.partition(": ")
        first, _, last = re.sub(r"[A-Za-z]\w*", "", names).strip().partition("..")
        for name in re.findall(r"[A-Za-z]\w*", names):
            yield name, Sample(re.sub(r"\bOP\b", name, text), int(first or 1), int(last or 99))


SAMPLES: dict[str, list[Sample]] = {
    **{operator: _unary(operator) for operator in _UNARY.split()},
    **{
        operator: [
            Sample(f"(float[2,3] a, float[2,3] b) => (float[2,3] y) {{ y = {operator} (a, b) }}"),
            Sample(f"(float[2,3] a, float[3] b) => (float[2,3] y) {{ y = {operator} (a, b) }}", first=7),
        ]
        for operator in _ARITHMETIC.split()
    },
    **{
        operator: [
            Sample(f"({kind}[5,3] a, {kind}[3] b) => (bool[5,3] y) {{ y = {operator} (a, b) }}", first)
            for kind, first in (("float", 11 if operator == "Equal" else 7), ("int32", 9))
        ]
        for operator in _COMPARISON.split()
    },
    **{f"Reduce{what}": _reduction(f"Reduce{what}") for what in _REDUCTION.split()},
    **{operator: [_recurrent(operator, gates)] for operator, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))},
}
for _name, _sample in read(_OTHERS):
    SAMPLES.setdefault(_name, []).append(_sample)
