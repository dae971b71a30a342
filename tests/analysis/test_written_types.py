"""Types of nodes that are written after the inference of the whole model."""

from __future__ import annotations

import onnx
from onnx import helper

from onnx_migrate.analysis.scope import scopes
from onnx_migrate.analysis.written_types import record_outputs
from onnx_migrate.model.weights import Weights
from tests.harness import model

SOURCE = """<ir_version: 8, opset_import: ["":13]>
g (float[2,3,N] x, int64[k] u) => (float[2,3,N] y) <int64[2] to = {6, -1}> { y = Relu(x) }"""


def test_types_follow_from_inputs_attributes_and_constants() -> None:
    scope = scopes(model(SOURCE), Weights(), result_ir_version=8)[0]
    cases = [
        (helper.make_node("Reshape", ["x", "to"], ["flat"]), 13, onnx.TensorProto.FLOAT, (6, None)),
        (helper.make_node("Cast", ["x"], ["wide"], to=onnx.TensorProto.DOUBLE), 9, onnx.TensorProto.DOUBLE, (2, 3, None)),
        (helper.make_node("ReduceMax", ["wide"], ["top"], axes=[2], keepdims=0), 12, onnx.TensorProto.DOUBLE, (2, 3)),
        (helper.make_node("Reshape", ["x", "u"], ["open"]), 13, onnx.TensorProto.FLOAT, None),
    ]  # fmt: skip
    for node, opset, dtype, shape in cases:
        record_outputs(scope, node, opset)
        known = scope.value_type(node.output[0])
        assert (known.dtype, known.shape) == (dtype, shape), node.op_type


def test_what_does_not_follow_stays_unknown() -> None:
    scope = scopes(model(SOURCE), Weights(), result_ir_version=8)[0]
    for node in (
        helper.make_node("Own", ["x"], ["own"], domain="mine"),
        helper.make_node("Relu", ["nothing"], ["r"]),
    ):
        record_outputs(scope, node, 13)
        assert scope.value_type(node.output[0]).shape is None
