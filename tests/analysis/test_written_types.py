"""Types of nodes that are written after the inference of the whole model."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from onnx_migrate.analysis import written_types
from onnx_migrate.analysis.scope import scopes
from onnx_migrate.analysis.written_types import inference_refusal, record_outputs
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


def test_nodes_alike_are_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = scopes(model(SOURCE), Weights(), result_ir_version=8)[0]
    asked: list[str] = []
    infer = written_types.infer_node_outputs
    monkeypatch.setattr(
        written_types, "infer_node_outputs", lambda *given: (asked.append(given[1].op_type), infer(*given))[1]
    )
    written_types._answer.cache_clear()
    for index in range(5):
        record_outputs(scope, helper.make_node("ReduceMax", ["x"], [f"r{index}"], axes=[1]), 12)
        record_outputs(scope, helper.make_node("Neg", [f"r{index}"], [f"n{index}"]), 13)
    record_outputs(scope, helper.make_node("ReduceMax", ["x"], ["other"], axes=[0]), 12)

    assert asked == ["ReduceMax", "Neg", "ReduceMax"]
    assert scope.value_type("n4").shape == (2, 1, None)
    assert scope.value_type("n4").symbols == ("", "", "N")
    assert scope.value_type("other").shape == (1, 3, None)


def test_what_the_inference_refuses_is_said() -> None:
    scope = scopes(model(SOURCE), Weights(), result_ir_version=8)[0]
    refused = inference_refusal(scope, helper.make_node("Flatten", ["x"], ["y"], axis=9), 13)
    assert refused is not None
    assert "axis" in refused
    assert inference_refusal(scope, helper.make_node("Flatten", ["x"], ["y"], axis=1), 13) is None
    assert inference_refusal(scope, helper.make_node("Own", ["x"], ["y"], domain="mine"), 13) is None
