"""Models that other converters bring down wrongly, make invalid or refuse, with the oldest opset that ours reaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from onnx_migrate.standard.ir_versions import minimal_ir_version
from tests import harness

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A graph's text at an opset, the oldest opset that it reaches, and the code of the refusal below it."""

    name: str
    opset: int
    text: str
    reaches: int = 7
    code: str = ""
    feeds: dict[str, Any] = field(default_factory=dict)
    expected: tuple[Any, ...] = ()
    """The outputs of a model that a release of ONNX Runtime loads and fails to run."""
    no_way_by: int = 0
    """An opset between from which it cannot go on, as it has another form there; 0 for none."""
    function: str = ""
    """The text of a local function."""
    also_inputs: tuple[str, ...] = ()
    """Initializers that are inputs too, so that a caller may replace them."""
    tolerance: float = 0.0
    """How far the numbers may be off, where kernels add in another order."""

    def model(self) -> onnx.ModelProto:
        """Return the model."""
        ir_version = max(8, minimal_ir_version(self.opset))
        local = ', "local": 1' if self.function else ""
        head = f'<ir_version: {ir_version}, opset_import: ["": {self.opset}{local}]> g'
        body = f'<domain: "local", opset_import: ["": {self.opset}]> {self.function}' if self.function else ""
        proto = harness.model(f"{head} {self.text} {body}")
        for tensor in proto.graph.initializer:
            if tensor.name in self.also_inputs:
                proto.graph.input.append(
                    onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
                )
        return proto

    def given(self) -> dict[str, Any]:
        """Return what the model is fed."""
        return {**harness.random_feeds(self.model()), **self.feeds}


_X = "(float[2,3,4] x) => (float[A,B,C] y)"
_XYZ = "(float[2,3,4] x) => (float[A,B,C] y, float[D,E,F] z)"
_FILLED = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
_NEAR = np.array([2**24 + 1, 5, -(2**24) - 1], np.int64)
_IMAGE = "(float[1,2,4,5] x) => (float[A,B,C,D] y)"

CASES = [
    Case("softmax-1", 13, f"{_X} {{ y = Softmax <axis = 1> (x) }}"),
    Case("logsoftmax-0", 13, f"{_X} {{ y = LogSoftmax <axis = 0> (x) }}"),
    Case("softmax-negative", 13, f"{_X} {{ y = Softmax <axis = -2> (x) }}"),
    Case(
        "axes-that-a-caller-replaces",
        13,
        "(float[2,3,4] x) => (float[A,B] y) <int64[1] a = {1}> { y = ReduceSum <keepdims = 0> (x, a) }",
        feeds={"a": np.array([2])},
        also_inputs=("a",), reaches=13, code="needs-constant",
    ),
    Case(
        "greater-int64", 9, "(int64[3] x, int64[3] z) => (bool[3] y) { y = Greater (x, z) }",
        feeds={"x": _NEAR, "z": _NEAR - 1},
    ),
    Case(
        "matmul-int32", 9, "(int32[1,1] x, int32[1,1] z) => (int32[1,1] y) { y = MatMul (x, z) }",
        feeds={"x": np.array([[16777217]], np.int32), "z": np.array([[1]], np.int32)}, reaches=9, code="no-equal",
    ),
    Case(
        "flatten-int64", 9, "(int64[2,2] x) => (int64[A,B] y) { y = Flatten (x) }",
        feeds={"x": np.array([[2**53 + 1, 3], [-(2**62), 2**63 - 1]])},
    ),
    Case(
        "function", 13, "(float[2,3,4] x) => (float[2,3,4] y) { y = local.Act (x) }",
        function="Act (a) => (b) { c = Relu (a)  b = Softmax <axis = 1> (c) }",
    ),
    Case(
        "scan", 9,
        """(float[2] x, float[3,2] s) => (float[2] y, float[3,2] z) { y, z = Scan (x, s) <num_scan_inputs = 1,
        body = b (float[2] a, float[2] e) => (float[2] next, float[2] each)
        { next = Add (a, e)  each = Mul (a, e) }> }""",
        no_way_by=8,
    ),
    Case("sum-broadcast", 8, "(float[2,3,4] x, float[4] w) => (float[A,B,C] y) { y = Sum (x, w) }"),
    Case("max-broadcast", 8, "(float[2,3,4] x, float[4] w) => (float[A,B,C] y) { y = Max (x, w) }"),
    Case("dropout-mask", 10, "(float[2,3] x) => (float[2,3] y, bool[2,3] m) { y, m = Dropout (x) }"),
    Case(
        "quantize-half-scale", 23,
        "(float[2,3] x) => (uint8[2,3] y) <float s = {0.5}, uint8 z = {3}>"
        " { h = Cast <to = 10> (s)  y = QuantizeLinear (x, h, z) }",
        feeds={"x": np.array([[0, 0.5, -0.25], [200, -7, 1.25]], np.float32)},
        expected=(np.array([[3, 4, 3], [255, 0, 5]], np.uint8),),
    ),
    Case(
        "dequantize-half-scale", 19,
        "(int32[2,3] x) => (float[2,3] y) <float s = {0.5}>"
        " { h = Cast <to = 10> (s)  w = DequantizeLinear (x, h)  y = Cast <to = 1> (w) }",
    ),
    Case(
        "pad-wrap", 19,
        '(float[2,3] x) => (float[A,B] y) <int64[4] p = {0, 2, 0, 1}> { y = Pad <mode = "wrap"> (x, p) }',
    ),
    Case(
        "resize-symmetric", 19,
        f'{_IMAGE} <float[4] s = {{1, 1, 1.5, 1.5}}> {{ y = Resize <mode = "linear",'
        ' coordinate_transformation_mode = "half_pixel_symmetric"> (x, , s) }',
    ),
    Case(
        "noop-0", 18, f"{_XYZ} <int64[1] a = {{1}}> {{ y = ReduceMean <noop_with_empty_axes = 0> (x, a)"
        "  z = ReduceMax <noop_with_empty_axes = 0> (x) }",
    ),
    Case("noop-1", 18, f"{_X} {{ y = ReduceMean <noop_with_empty_axes = 1> (x) }}",
         feeds={"x": _FILLED}, expected=(_FILLED,)),
    Case("reducesum-noop-1", 13, f"{_X} {{ y = ReduceSum <noop_with_empty_axes = 1> (x) }}",
         feeds={"x": _FILLED}, expected=(_FILLED,)),
    Case(
        "cast-saturate", 19,
        "(float[2,3] x) => (float16[2,3] y) { y = Cast <saturate = 1, to = 10> (x) }",
    ),
    Case(
        "cast-round-mode", 24,
        '(float[2,3] x) => (float16[2,3] y) { y = Cast <round_mode = "up", to = 10> (x) }',
    ),
    Case(
        "castlike-saturate", 19,
        "(float[2,3] x, float16 w) => (float16[2,3] y) { y = CastLike <saturate = 1> (x, w) }",
    ),
    Case(
        "quantize-saturate", 19,
        "(float[2,3] x) => (uint8[2,3] y) <float s = {0.5}, uint8 z = {3}> { y = QuantizeLinear <saturate = 1> (x, s, z) }",
    ),
    Case(
        "quantize-precision", 23,
        "(float[2,3] x) => (uint8[2,3] y) <float s = {0.5}, uint8 z = {3}> { y = QuantizeLinear <precision = 1> (x, s, z) }",
    ),
    Case(
        "dequantize-output-dtype", 23,
        "(uint8[2,3] x) => (float[2,3] y) <float s = {0.5}> { y = DequantizeLinear <output_dtype = 1> (x, s) }",
    ),
    *(
        Case(
            f"averagepool-dilations-{step}", 19,
            f"{_IMAGE} {{ y = AveragePool <kernel_shape = [2, 2], dilations = [{step}, {step}]> (x) }}", tolerance=1e-6,
        )
        for step in (1, 2)
    ),
    Case(
        "axes-by-value-ints", 18,
        f"{_X} {{ a = Constant <value_ints = [1]> ()  y = ReduceMean (x, a) }}",
    ),
    Case(
        "axes-of-the-outer-graph", 18,
        """(bool c, float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = If (c) <
        then_branch = t () => (float[2,1] p) { p = ReduceMean (x, a) },
        else_branch = e () => (float[2,1] q) { q = ReduceMax (x, a) }> }""",
    ),
    Case(
        "shared-scales", 9,
        "(float[1,2,4,5] x) => (float[A,B,C,D] y, float[E,F,G,H] z) <float[4] s = {1, 1, 2, 2}>"
        " { y = Upsample (x, s)  z = Upsample <mode = \"linear\"> (x, s) }",
    ),
    Case(
        "softmax-then-reshape", 13,
        "(float[2,3,4] x) => (float[A,B] y) <int64[2] s = {6, 4}> { a = Softmax <axis = 1> (x)  y = Reshape (a, s) }",
    ),
    Case("squeeze", 13, "(float[1,3,1] x) => (float[A] y) { y = Squeeze (x) }"),
    Case(
        "split-lengths", 13,
        "(float[5,2] x) => (float[A,B] y, float[C,D] z) <int64[2] s = {2, 3}> { y, z = Split (x, s) }",
    ),
    Case("empty-axes", 13, f"{_X} <int64[0] a = {{}}> {{ y = ReduceSum (x, a) }}"),
    Case("dft", 20, "(float[2,8,1] x) => (float[2,8,2] y) { y = DFT (x) }", tolerance=1e-5),
    Case(
        "batchnormalization", 9,
        "(float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y)"
        " { w = Abs (v)  y = BatchNormalization (x, s, b, m, w) }",
    ),
    Case(
        "hardmax-flatten-gather-dropout", 13,
        "(float[2,3,4] x) => (float[A,B] y) <int64[2] i = {1, 0}> { a = Hardmax <axis = 1> (x)"
        "  b = Flatten <axis = 2> (a)  c = Gather (b, i)  y = Dropout (c) }",
    ),
    Case("clip", 11, f"{_X} <float lo = {{-1}}, float hi = {{2}}> {{ y = Clip (x, lo, hi) }}"),
    Case(
        "pad", 18,
        "(float[2,3] x) => (float[A,B] y) <int64[4] p = {1, 0, 2, 1}, float v = {1.5}> { y = Pad (x, p, v) }",
    ),
    Case("resize", 13, f'{_IMAGE} <float[4] s = {{1, 1, 2, 2}}> {{ y = Resize <mode = "linear"> (x, , s) }}'),
    Case("topk", 11, "(float[3,6] x) => (float[A,B] y, int64[C,D] i) <int64[1] k = {3}> { y, i = TopK (x, k) }"),
    Case(
        "slice", 10,
        "(float[5,6] x) => (float[A,B] y) <int64[1] s = {1}, int64[1] e = {-1}, int64[1] a = {1}> { y = Slice (x, s, e, a) }",
    ),
    Case("relu-reshape", 14, "(float[2,6] x) => (float[A,B] y) <int64[2] s = {3, -1}> { a = Relu (x)  y = Reshape (a, s) }"),
    Case(
        "batchnormalization-15", 15,
        "(float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y)"
        " { w = Abs (v)  y = BatchNormalization (x, s, b, m, w) }",
    ),
    Case("shape", 15, "(float[2,3,4] x) => (int64[A] y) { y = Shape <start = 1> (x) }"),
    Case("split-num-outputs", 18, "(float[5,2] x) => (float[A,B] y, float[C,D] z) { y, z = Split <num_outputs = 2> (x) }"),
    Case(
        "groupnormalization", 21,
        "(float[2,4,3] x, float[4] s, float[4] b) => (float[2,4,3] y) { y = GroupNormalization <num_groups = 2> (x, s, b) }",
        tolerance=1e-5,
    ),
    Case("maxpool", 10, f"{_IMAGE} {{ y = MaxPool <kernel_shape = [2, 2], strides = [2, 2], ceil_mode = 1> (x) }}"),
    Case(
        "if", 16,
        "(bool c, float[2] x) => (float[2] y) { y = If (c) < then_branch = t () => (float[2] p) { p = Relu (x) },"
        " else_branch = e () => (float[2] q) { q = Neg (x) }> }",
    ),
    Case(
        "layernormalization", 17,
        "(float[2,3,4] x, float[4] s, float[4] b) => (float[2,3,4] y) { y = LayerNormalization (x, s, b) }",
        tolerance=1e-5,
    ),
    Case(
        "batchnormalization-training", 14,
        "(float[2,3,4] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3,4] y, float[3] n, float[3] o)"
        " { w = Abs (v)  y, n, o = BatchNormalization <training_mode = 1> (x, s, b, m, w) }",
        tolerance=1e-5,
    ),
    Case(
        "scatter-add", 16,
        "(float[2,3] x, float[2,2] u) => (float[2,3] y) <int64[2,2] i = {2, 2, 1, 1}>"
        ' { y = ScatterElements <axis = 1, reduction = "add"> (x, i, u) }', reaches=9, code="no-equal",
    ),
    Case(
        "resize-axes", 18,
        f'{_IMAGE} <float[2] s = {{2, 2}}> {{ y = Resize <axes = [2, 3], mode = "nearest"> (x, , s) }}',
    ),
    Case("equal-float", 11, "(float[2,3] x, float[3] z) => (bool[2,3] y) { y = Equal (x, z) }"),
    Case("mod-float", 28, "(float[2,9] x, float[9] z) => (float[2,9] y) { y = Mod (x, z) }", reaches=10, code="no-equal"),
    Case("cos", 22, f"{_X} {{ y = Cos (x) }}"),
]  # fmt: skip
