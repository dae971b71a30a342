"""A small model, what the tests of migrations ask of one, and options that make them quick."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.parser

from tests.support.paths import FIXTURES

UPSAMPLE = FIXTURES / "conv_relu_upsample_opset9.onnx"
FAST: dict[str, Any] = {"verify": False, "simplify": False}
HERE: dict[str, Any] = {"isolated": False}

SMALL = """<ir_version: 6, opset_import: ["": 11]>
g (float[1,3,4] x) => (float[1,12] y) <float[3,4] w = {1., 2., 3., 4., 5., 6., 7., 8., 9., 8., 7., 6.}> {
    a = Softmax <axis = 1> (x)
    b = Mul (a, w)
    y = Flatten (b)
}"""


def small() -> onnx.ModelProto:
    proto: onnx.ModelProto = onnx.parser.parse_model(SMALL)
    return proto


def bytes_of(proto: onnx.ModelProto) -> bytes:
    return bytes(proto.SerializeToString(deterministic=True))


def opset_of(proto: onnx.ModelProto) -> int:
    return int(proto.opset_import[0].version)


def dims(value: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
