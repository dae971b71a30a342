"""Small models of each operator, in ONNX's text form, with the opsets whose form of the operator they have.

Every sample uses the attributes and inputs that its operator has in all of these opsets.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from onnx_migrate.standard.ir_versions import minimal_ir_version
from tests import harness

__all__ = ["SAMPLES", "Sample", "samples"]


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
_OUTPUT = {
    "Size": "int64",
    "Shape": "int64[N]",
    "NonZero": "int64[4,N]",
}
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


_CONDITIONAL = """
    y = If (c) <
        then_branch = yes () => (float[2,3] p) { p = Add (x, x) },
        else_branch = no () => (float[2,3] q) { q = Mul (x, x) }>"""
_RECURRENT = "int32[2] lengths = {3, 2}"
_QUANTIZED = "<float scale = {0.05}, uint8 zero = {128}>"
_QUANTIZED_AXIS = "<float[3] scale = {0.05, 0.1, 0.2}, int8[3] zero = {0, 1, -1}>"

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
    **{
        operator: [
            Sample(
                f"(float[2,3] a, float[2,3] b, float[2,3] c) => (float[2,3] y) {{ y = {operator} (a, b, c) }}"
            ),
            Sample(
                f"(float[2,3] a, float[3] b, float c) => (float[2,3] y) {{ y = {operator} (a, b, c) }}",
                first=8,
            ),
        ]
        for operator in ("Max", "Mean", "Min", "Sum")
    },
    **{
        operator: [
            Sample(
                f"(float[2,3,4] x) => (int64[2,1,4] y, int64[3,4] z) "
                f"{{ y = {operator} <axis = 1> (x) z = {operator} <keepdims = 0> (x) }}"
            )
        ]
        for operator in ("ArgMax", "ArgMin")
    },
    "Attention": [
        Sample(
            "(float[1,2,3,4] q, float[1,2,5,4] k, float[1,2,5,4] v) => (float[A,B,C,D] y) "
            "{ y = Attention <is_causal = 1> (q, k, v) }"
        ),
        Sample(
            "(float[1,3,8] q, float[1,5,4] k, float[1,5,4] v, float[3,5] m) => (float[A,B,C] y) "
            "{ y = Attention <q_num_heads = 4, kv_num_heads = 2, softcap = 2.0> (q, k, v, m) }"
        ),
    ],
    "AveragePool": [
        Sample(
            "(float[1,2,7,6] x) => (float[A,B,C,D] y)"
            "{ y = AveragePool <kernel_shape = [3, 2], strides = [2, 1]> (x) }"
        ),
        Sample(
            "(float[1,2,7,6] x) => (float[A,B,C,D] y, float[E,F,G,H] z, float[I,J,K,L] w) {"
            "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1], count_include_pad = 1> (x)"
            "z = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)"
            'w = AveragePool <kernel_shape = [3, 3], strides = [2, 2], auto_pad = "SAME_UPPER"> (x) }',
            first=7,
        ),
        Sample(
            "(float[1,2,7,6] x) => (float[A,B,C,D] y, float[E,F,G,H] z) {"
            "y = AveragePool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1> (x)"
            "z = AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1],"
            "ceil_mode = 1> (x) }",
            first=10,
        ),
    ],
    "BatchNormalization": [
        Sample(
            "(float[2,3,4] x, float[3] s, float[3] b, float[3] m) => (float[2,3,4] y) <float[3] v"
            " = {0.5, 1, 2}>"
            "{ y = BatchNormalization <epsilon = 0.01> (x, s, b, m, v) }",
            first=7,
        )
    ],
    "Bernoulli": [Sample("(float[9] x) => (float[9] y) { p = Sigmoid (x) y = Bernoulli <seed = 3.0> (p) }")],
    "BitShift": [
        Sample(
            "(uint8[9] x, uint8[9] n) => (uint8[9] y, uint8[9] z) <uint8 seven = {7}> {"
            'm = Min (n, seven) y = BitShift <direction = "LEFT"> (x, m) z = BitShift'
            ' <direction = "RIGHT"> (x, m) }'
        )
    ],
    "Cast": [
        Sample("(float[9] x) => (int64[9] y) { y = Cast <to = 7> (x) }", first=6),
        Sample("(float[9] x) => (double[9] y) { y = Cast <to = 11> (x) }", first=6),
        Sample("(int64[9] x) => (float[9] y) { y = Cast <to = 1> (x) }", first=6),
        Sample("(float[9] x) => (uint8[9] y) { z = Abs (x) y = Cast <to = 2> (z) }", first=6),
        Sample("(float[9] x) => (float[9] y) { z = Cast <to = 17> (x) y = Cast <to = 1> (z) }", first=19),
        Sample(
            "(float[9] x) => (float[9] y) <float s = {1000}>"
            "{ l = Mul (x, s) z = Cast <to = 19, saturate = 0> (l) y = Cast <to = 1> (z) }",
            first=19,
        ),
    ],
    "CastLike": [
        Sample("(float[9] x, int64[1] t) => (int64[9] y) { y = CastLike (x, t) }"),
        Sample("(float[9] x, float16[1] t) => (float16[9] y) { y = CastLike (x, t) }"),
    ],
    "Clip": [
        Sample("(float[2,9] x) => (float[2,9] y) { y = Clip <min = -1.0, max = 2.0> (x) }", first=6, last=10),
        Sample(
            "(float[2,9] x) => (float[2,9] y) <float a = {-1}, float b = {2}> { y = Clip (x, a, b) }",
            first=11,
        ),
        Sample("(float[2,9] x) => (float[2,9] y) <float b = {2}> { y = Clip (x, , b) }", first=11),
    ],
    "Compress": [
        Sample("(float[3,2] x) => (float[A,B] y) <bool[3] c = {1, 0, 1}> { y = Compress <axis = 0> (x, c) }"),
        Sample("(float[3,2] x) => (float[N] y) <bool[5] c = {1, 0, 1, 1, 0}> { y = Compress (x, c) }"),
    ],
    "Concat": [
        Sample("(float[2,3] a, float[2,1] b) => (float[A,B] y) { y = Concat <axis = 1> (a, b) }"),
        Sample("(float[2,3] a, float[4,3] b) => (float[A,B] y) { y = Concat <axis = 0> (a, b) }"),
    ],
    "Constant": [
        Sample(
            "(float[2] x) => (float[2] y) { c = Constant <value = float[2] {1.5, -2}> () y = Sum (x, c) }"
        ),
        Sample(
            "(float[2] x) => (float[2] y) { c = Constant <value_floats = [1.5, -2.0]> () y = Add (x, c) }",
            first=12,
        ),
        Sample("(int64[2] x) => (int64[2] y) { c = Constant <value_int = 7> () y = Add (x, c) }", first=12),
        Sample('(int64[2] x) => (string[2] y) { y = Constant <value_strings = ["a", "b"]> () }', first=12),
    ],
    "ConstantOfShape": [
        Sample("(float[2,3] x) => (float[A,B] y) { s = Shape (x) y = ConstantOfShape (s) }"),
        Sample(
            "(float[2,3] x) => (int64[A,B] y) { s = Shape (x) y = ConstantOfShape <value = int64[1]"
            " {7}> (s) }"
        ),
    ],
    "Conv": [
        Sample(
            "(float[1,4,6,5] x, float[2,2,3,3] w, float[2] b) => (float[A,B,C,D] y) {"
            "y = Conv <kernel_shape = [3, 3], strides = [2, 1], pads = [1, 0, 1, 2], group = 2> (x, w, b) }"
        ),
        Sample(
            "(float[1,1,7,6] x, float[2,1,3,3] w) => (float[A,B,C,D] y, float[E,F,G,H] z, float[I,J,K,L] v) {"
            'y = Conv <dilations = [2, 1]> (x, w) z = Conv <auto_pad = "SAME_LOWER", strides = [2, 2]> (x, w)'
            'v = Conv <auto_pad = "VALID"> (x, w) }'
        ),
    ],
    "ConvTranspose": [
        Sample(
            "(float[1,2,4,3] x, float[2,3,3,3] w, float[3] b) => (float[A,B,C,D] y) {"
            "y = ConvTranspose <strides = [2, 2], pads = [1, 0, 1, 2], output_padding = [1, 0]> (x, w, b) }"
        ),
        Sample(
            "(float[1,2,4,3] x, float[2,3,3,3] w) => (float[A,B,C,D] y) {"
            "y = ConvTranspose <strides = [2, 2], output_shape = [9, 8], dilations = [1, 1]> (x, w) }"
        ),
    ],
    "CumSum": [
        Sample(
            "(float[2,5] x) => (float[2,5] y, float[2,5] z) <int64 one = {1}>"
            "{ y = CumSum <exclusive = 1> (x, one) z = CumSum <reverse = 1> (x, one) }"
        )
    ],
    "DeformConv": [
        Sample(
            "(float[1,2,4,4] x, float[3,2,2,2] w, float[1,8,3,3] o, float[3] b, float[1,4,3,3] m)"
            "=> (float[A,B,C,D] y) { y = DeformConv (x, w, o, b, m) }"
        )
    ],
    "DepthToSpace": [
        Sample("(float[1,8,2,3] x) => (float[A,B,C,D] y) { y = DepthToSpace <blocksize = 2> (x) }"),
        Sample(
            '(float[1,8,2,3] x) => (float[A,B,C,D] y) { y = DepthToSpace <blocksize = 2, mode = "CRD"> (x) }',
            11,
        ),
    ],
    "DequantizeLinear": [
        Sample(f"(uint8[2,3] x) => (float[2,3] y) {_QUANTIZED} {{ y = DequantizeLinear (x, scale, zero) }}"),
        Sample("(int8[2,3] x, float s) => (float[2,3] y) { y = DequantizeLinear (x, s) }"),
        Sample(
            f"(int8[2,3] x) => (float[2,3] y) {_QUANTIZED_AXIS} {{ y = DequantizeLinear"
            f" <axis = 1> (x, scale, zero) }}",
            first=13,
        ),
    ],
    "Det": [Sample("(float[2,3,3] x) => (float[2] y) { y = Det (x) }")],
    "Dropout": [
        Sample("(float[2,3] x) => (float[2,3] y) { y = Dropout <ratio = 0.3> (x) }", first=7, last=11),
        Sample(
            "(float[2,3] x) => (float[2,3] y, bool[2,3] m) <float r = {0.3}> { y, m = Dropout (x, r) }",
            first=12,
        ),
    ],
    "Einsum": [
        Sample(
            '(float[2,3] a, float[3,4] b) => (float[A,B] y) { y = Einsum <equation = "ij,jk->ki"> (a, b) }'
        )
    ],
    "Expand": [Sample("(float[3,1] x) => (float[A,B,C] y) <int64[3] s = {2, 1, 4}> { y = Expand (x, s) }")],
    "EyeLike": [
        Sample("(float[3,4] x) => (float[3,4] y) { y = EyeLike <k = 1> (x) }"),
        Sample("(int32[3,4] x) => (double[3,4] y) { y = EyeLike <dtype = 11> (x) }"),
    ],
    "Flatten": [
        Sample(
            "(float[2,3,4] x) => (float[A,B] y, float[C,D] z) { y = Flatten (x) z = Flatten <axis = 2> (x) }"
        ),
        Sample("(float[2,3,4] x) => (float[A,B] y) { y = Flatten <axis = 0> (x) }"),
    ],
    "Gather": [
        Sample("(float[4,3] x) => (float[A,B,C] y) <int64[2,1] i = {3, 0}> { y = Gather (x, i) }"),
        Sample("(float[4,3] x) => (float[A,B] y) <int32[2] i = {2, 0}> { y = Gather <axis = 1> (x, i) }"),
    ],
    "GatherElements": [
        Sample(
            "(float[2,3] x) => (float[2,2] y) <int64[2,2] i = {2, -1, 0, 1}> { y = GatherElements"
            " <axis = 1> (x, i) }"
        )
    ],
    "GatherND": [
        Sample(
            "(float[2,3,4] x) => (float[A,B] y) <int64[3,2] i = {0, 1, 1, 2, -1, 0}> { y = GatherND (x, i) }"
        ),
        Sample(
            "(float[2,3] x) => (float[N] y) <int64[2,1] i = {2, 0}> { y = GatherND <batch_dims = 1> (x, i) }",
            12,
        ),
    ],
    "Gemm": [
        Sample(
            "(float[2,3] a, float[3,4] b, float[2,4] c) => (float[2,4] y) { y = Gemm"
            " <alpha = 0.5> (a, b, c) }"
        ),
        Sample(
            "(float[3,2] a, float[4,3] b, float[4] c) => (float[2,4] y)"
            "{ y = Gemm <alpha = 0.5, beta = 2.0, transA = 1, transB = 1> (a, b, c) }",
            first=7,
        ),
    ],
    "GridSample": [
        Sample(
            "(float[1,2,4,5] x, float[1,3,3,2] g) => (float[A,B,C,D] y, float[E,F,G,H] z) { k = Tanh (g)"
            'y = GridSample <align_corners = 1, mode = "nearest", padding_mode = "border"> (x, k)'
            'z = GridSample <padding_mode = "reflection"> (x, k) }'
        )
    ],
    "If": [Sample(f"(float[2,3] x, bool c) => (float[2,3] y) {{ {_CONDITIONAL} }}", first=7)],
    "InstanceNormalization": [
        Sample(
            "(float[2,3,4] x, float[3] s, float[3] b) => (float[2,3,4] y) {"
            " y = InstanceNormalization (x, s, b) }",
            6,
        )
    ],
    "LayerNormalization": [
        Sample(
            "(float[2,3,4] x, float[4] s, float[4] b) => (float[2,3,4] y) {"
            " y = LayerNormalization <axis = -1, epsilon = 0.001> (x, s, b) }"
        )
    ],
    "Loop": [
        Sample(
            "(float[2] x) => (float[2] y, float[A,B] z) <int64 n = {3}, bool c = {1}> { y,"
            " z = Loop (n, c, x) <"
            "body = b (int64 i, bool go, float[2] a) => (bool on, float[2] next, float[2] each)"
            "{ on = Identity (go) next = Add (a, x) each = Mul (a, a) }> }",
            first=7,
        )
    ],
    "IsInf": [
        Sample(
            "(float[9] x) => (bool[9] y, bool[9] z)"
            "{ w = Ceil (x) i = Reciprocal (w) y = IsInf (i) z = IsInf <detect_negative = 0> (i) }"
        )
    ],
    "IsNaN": [Sample("(float[9] x) => (bool[9] y) { l = Log (x) y = IsNaN (l) }")],
    "LpPool": [
        Sample(
            "(float[1,2,6,7] x) => (float[A,B,C,D] y, float[E,F,G,H] z) {"
            "y = LpPool <kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]> (x)"
            'z = LpPool <kernel_shape = [2, 2], p = 1, auto_pad = "SAME_UPPER"> (x) }',
            first=2,
        ),
    ],
    "MatMul": [Sample("(float[2,1,3,4] a, float[5,4,2] b) => (float[A,B,C,D] y) { y = MatMul (a, b) }")],
    "MaxPool": [
        Sample(
            "(float[1,2,7,6] x) => (float[A,B,C,D] y, float[E,F,G,H] z) {"
            "y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)"
            'z = MaxPool <kernel_shape = [3, 2], auto_pad = "SAME_LOWER", strides = [2, 2]> (x) }'
        ),
        Sample(
            "(float[1,2,7,6] x) => (float[A,B,C,D] y, int64[E,F,G,H] i)"
            "{ y, i = MaxPool <kernel_shape = [3, 3], storage_order = 1> (x) }",
            first=8,
        ),
        Sample(
            "(float[1,2,7,6] x) => (float[A,B,C,D] y)"
            "{ y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1,"
            "dilations = [2, 1]> (x) }",
            first=10,
        ),
    ],
    "MaxRoiPool": [
        Sample(
            "(float[1,2,6,6] x) => (float[A,B,C,D] y) <float[2,5] r = {0, 0, 0, 3, 4, 0, 1, 2, 5, 5}>"
            "{ y = MaxRoiPool <pooled_shape = [2, 2], spatial_scale = 1.0> (x, r) }"
        )
    ],
    "MaxUnpool": [
        Sample(
            "(float[1,1,4,4] x) => (float[A,B,C,D] y) { p, i = MaxPool"
            " <kernel_shape = [2, 2], strides = [2, 2]> (x)"
            "y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (p, i) }"
        )
    ],
    "Mod": [
        Sample(
            "(int32[9] a) => (int32[9] y, int32[9] z) <int32 b = {-4}> { y = Mod (a, b) z = Mod"
            " <fmod = 1> (a, b) }"
        ),
        Sample("(float[2,9] a, float[9] b) => (float[2,9] y) { y = Mod <fmod = 1> (a, b) }"),
    ],
    "Multinomial": [
        Sample("(float[2,4] x) => (int32[2,9] y) { y = Multinomial <sample_size = 9, seed = 3.0> (x) }"),
        Sample(
            "(float[2,4] x) => (int64[2,9] y) { y = Multinomial"
            " <sample_size = 9, seed = 3.0, dtype = 7> (x) }"
        ),
    ],
    "NegativeLogLikelihoodLoss": [
        Sample(
            "(float[3,5,2] x, float[5] w) => (float y, float[3,2] z) <int64[3,2] t = {0, 4, 2, 1, 3, 3}> {"
            "y = NegativeLogLikelihoodLoss <ignore_index = 3> (x, t, w)"
            'z = NegativeLogLikelihoodLoss <reduction = "none"> (x, t) }'
        )
    ],
    "NonMaxSuppression": [
        Sample(
            "(float[1,2,4] s) => (int64[N,3] y) <float[1,4,4] b"
            " = {0, 0, 2, 2, 0, 0, 2, 1.5, 3, 3, 4, 4, 1, 1, 3, 3},"
            "int64 n = {3}, float iou = {0.5}, float low = {-9}> {"
            " y = NonMaxSuppression (b, s, n, iou, low) }"
        )
    ],
    "OneHot": [
        Sample(
            "(float[2] v) => (float[A,B] y, float[C,D] z) <int64[3] i = {0, 4, 2}, int64 d = {5}> {"
            "y = OneHot (i, d, v) z = OneHot <axis = 0> (i, d, v) }"
        )
    ],
    **{
        operator: [
            Sample(
                "(float[2,3] x) => (float[2,3] y, bool h)"
                "{ o = Optional (x) y = OptionalGetElement (o) h = OptionalHasElement (o) }"
            )
        ]
        for operator in ("Optional", "OptionalGetElement", "OptionalHasElement")
    },
    "Pad": [
        Sample(
            "(float[2,3] x) => (float[A,B] y, float[C,D] z, float[E,F] w)"
            "<int64[4] p = {1, 0, 2, -1}, int64[4] q = {1, 2, 0, 1}, float v = {1.5}>"
            '{ y = Pad (x, p, v) z = Pad <mode = "edge"> (x, q) w = Pad <mode = "reflect"> (x, q) }',
            first=11,
        )
    ],
    "QLinearMatMul": [
        Sample(
            "(uint8[2,3] a, uint8[3,4] b) => (uint8[2,4] y)"
            "<float s = {0.05}, uint8 z = {3}> { y = QLinearMatMul (a, s, z, b, s, z, s, z) }"
        )
    ],
    "QuantizeLinear": [
        Sample(f"(float[2,3] x) => (uint8[2,3] y) {_QUANTIZED} {{ y = QuantizeLinear (x, scale, zero) }}"),
        Sample("(float[2,3] x) => (uint8[2,3] y) <float s = {0.5}> { y = QuantizeLinear (x, s) }"),
        Sample(
            f"(float[2,3] x) => (int8[2,3] y) {_QUANTIZED_AXIS} {{ y = QuantizeLinear"
            f" <axis = 1> (x, scale, zero) }}",
            first=13,
        ),
    ],
    "RandomNormal": [
        Sample("() => (float[3,4] y) { y = RandomNormal <shape = [3, 4], mean = 1.0, seed = 3.0> () }")
    ],
    "RandomNormalLike": [
        Sample("(float[3,4] x) => (float[3,4] y) { y = RandomNormalLike <scale = 2.0, seed = 3.0> (x) }")
    ],
    "RandomUniform": [
        Sample("() => (float[3,4] y) { y = RandomUniform <shape = [3, 4], low = -1.0, seed = 3.0> () }")
    ],
    "RandomUniformLike": [
        Sample("(float[3,4] x) => (float[3,4] y) { y = RandomUniformLike <high = 2.0, seed = 3.0> (x) }")
    ],
    "Range": [
        Sample(
            "(float u) => (float[N] y) <float a = {1.5}, float b = {7}, float d = {0.5}> {"
            " y = Range (a, b, d) }"
        ),
        Sample(
            "(float u) => (int64[N] y) <int64 a = {9}, int64 b = {-7}, int64 d = {-3}> {"
            " y = Range (a, b, d) }"
        ),
    ],
    "Reshape": [
        Sample("(float[2,3,4] x) => (float[A,B] y) <int64[2] s = {0, -1}> { y = Reshape (x, s) }", first=5),
        Sample(
            "(float[0,3] x) => (float[A,B] y) <int64[2] s = {0, 5}> { y = Reshape <allowzero = 1> (x, s) }",
            first=14,
        ),
    ],
    "Resize": [
        Sample(
            "(float[1,1,4,5] x) => (float[A,B,C,D] y, float[E,F,G,H] z) <float[4] s = {1, 1, 1.5, 2.5}>"
            "{ y = Resize (x, , s) z = Resize"
            ' <mode = "cubic", coordinate_transformation_mode = "align_corners"> (x, , s) }',
            first=13,
        )
    ],
    "ReverseSequence": [
        Sample(
            "(float[4,3] x) => (float[4,3] y, float[4,3] z) <int64[3] n = {4, 1, 2}, int64[4] m"
            " = {3, 2, 1, 3}>"
            "{ y = ReverseSequence (x, n) z = ReverseSequence <batch_axis = 0, time_axis = 1> (x, m) }"
        )
    ],
    "RoiAlign": [
        Sample(
            "(float[1,2,6,6] x) => (float[A,B,C,D] y) <float[2,4] r"
            " = {0, 0, 3.5, 4, 1, 2, 5, 5}, int64[2] b = {0, 0}> {"
            'y = RoiAlign <output_height = 2, output_width = 3, sampling_ratio = 2, mode = "avg"> (x, r, b) }'
        ),
    ],
    "Scan": [
        Sample(
            "(float[2] x, float[3,2] s) => (float[2] y, float[A,B] z) { y, z = Scan (x, s)"
            " <num_scan_inputs = 1,"
            "body = b (float[2] a, float[2] e) => (float[2] next, float[2] each)"
            "{ next = Add (a, e) each = Mul (next, x) }> }",
            first=9,
        )
    ],
    **{
        operator: [
            Sample(
                f"(float[2,3] x, float[2,2] u) => (float[2,3] y) <int64[2,2] i = {{2, 0, 1, 2}}>"
                f"{{ y = {operator} <axis = 1> (x, i, u) }}"
            )
        ]
        for operator in ("Scatter", "ScatterElements")
    },
    "ScatterND": [
        Sample(
            "(float[4,2] x, float[2,2] u) => (float[4,2] y) <int64[2,1] i = {3, 1}> {"
            " y = ScatterND (x, i, u) }"
        ),
        Sample(
            "(float[4,2] x, float[2,2] u) => (float[4,2] y) <int64[2,1] i = {3, 3}>"
            '{ y = ScatterND <reduction = "add"> (x, i, u) }',
            first=16,
        ),
    ],
    "Slice": [
        Sample(
            "(float[5,6] x) => (float[A,B] y) { y = Slice <axes = [1], starts = [1], ends = [-1]> (x) }",
            last=9,
        ),
        Sample(
            "(float[5,6] x) => (float[A,B] y, float[C,D] z) <int64[1] s = {5}, int64[1] e"
            " = {-9}, int64[1] a = {-1},"
            "int64[1] t = {-2}, int64[2] o = {1, 2}, int64[2] p = {4, 9}>"
            "{ y = Slice (x, s, e, a, t) z = Slice (x, o, p) }",
            first=10,
        ),
    ],
    "SoftmaxCrossEntropyLoss": [
        Sample(
            "(float[3,5] x, float[5] w) => (float y, float[3] z, float[3,5] l) <int64[3] t = {0, 4, 2}> {"
            "y = SoftmaxCrossEntropyLoss <ignore_index = 4> (x, t, w)"
            'z, l = SoftmaxCrossEntropyLoss <reduction = "none"> (x, t) }'
        )
    ],
    "SpaceToDepth": [
        Sample("(float[1,2,4,6] x) => (float[A,B,C,D] y) { y = SpaceToDepth <blocksize = 2> (x) }")
    ],
    "Split": [
        Sample(
            "(float[5,2] x) => (float[A,B] y, float[C,D] z) { y, z = Split <axis = 0, split = [2, 3]> (x) }",
            2,
            12,
        ),
        Sample(
            "(float[5,2] x) => (float[A,B] y, float[C,D] z) <int64[2] s = {2, 3}> { y, z = Split (x, s) }",
            first=13,
        ),
    ],
    "SplitToSequence": [
        Sample(
            "(float[5,2] x) => (seq(float[A,B]) y, seq(float[C]) z) <int64[2] s = {2, 3}>"
            "{ y = SplitToSequence (x, s) z = SplitToSequence <axis = 1, keepdims = 0> (x) }"
        )
    ],
    "Squeeze": [
        Sample(
            "(float[1,3,1] x) => (float[A,B] y, float[C] z) { y = Squeeze <axes = [2]> (x) z = Squeeze (x) }",
            last=12,
        ),
        Sample("(float[1,3,1] x) => (float[A,B] y) <int64[1] a = {-1}> { y = Squeeze (x, a) }", first=13),
    ],
    "Tile": [Sample("(float[2,3] x) => (float[A,B] y) <int64[2] n = {2, 3}> { y = Tile (x, n) }", first=6)],
    "TopK": [
        Sample(
            "(float[3,6] x) => (float[A,B] y, int64[C,D] i) <int64[1] k = {3}> { y, i = TopK (x, k) }",
            first=10,
        ),
        Sample(
            "(float[6,3] x) => (float[A,B] y, int64[C,D] i) <int64[1] k = {2}>"
            "{ y, i = TopK <axis = 0, largest = 0> (x, k) }",
            first=11,
        ),
    ],
    "Unique": [
        Sample(
            "(int64[9] x) => (int64[A] y, int64[B] i, int64[C] j, int64[D] n) { y, i, j, n = Unique (x) }"
        ),
        Sample("(float[3,2] x) => (float[A,B] y) { d = Concat <axis = 0> (x, x) y = Unique <axis = 0> (d) }"),
    ],
    "Unsqueeze": [
        Sample("(float[2,3] x) => (float[A,B,C,D] y) { y = Unsqueeze <axes = [0, 3]> (x) }", last=12),
        Sample(
            "(float[2,3] x) => (float[A,B,C,D] y) <int64[2] a = {0, -1}> { y = Unsqueeze (x, a) }", first=13
        ),
    ],
    "Where": [Sample("(bool[2,1] c, float[2,3] a, float[3] b) => (float[2,3] y) { y = Where (c, a, b) }")],
    **{
        operator: [
            Sample(
                f"(float[3,2,4] x, float[2,{gates * 5},4] w, float[2,{gates * 5},5] r, "
                f"float[2,{gates * 10}] b)"
                f" => (float[A,B,C,D] y, float[E,F,G] h) <{_RECURRENT}>"
                f"{{ y, h = {operator}"
                f' <hidden_size = 5, direction = "bidirectional", clip = 2.0> (x, w, r, b, lengths) }}',
            )
        ]
        for operator, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))
    },
}
