"""Inference of one node: in another process, remembered, and entered into the types of a body."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, defs, helper

from onnx_migrate.facts import node_inference
from onnx_migrate.facts.node_inference import infer_node_outputs, inference_refusal, record_outputs
from onnx_migrate.facts.onnx_inference import InferenceError
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.weights import Weights
from tests.harness import model

X = helper.make_tensor_type_proto(TensorProto.FLOAT, [2, 3])


def inferred(node: onnx.NodeProto, opset: int = 18, **data: onnx.TensorProto) -> dict[str, onnx.TypeProto]:
    types = {"x": X, **{name: helper.make_tensor_type_proto(t.data_type, t.dims) for name, t in data.items()}}
    schema = defs.get_schema(node.op_type, opset)
    return infer_node_outputs(schema, node, types, data, {"": opset}, 8)


def shape(type_: onnx.TypeProto) -> list[int]:
    return [dim.dim_value for dim in type_.tensor_type.shape.dim]


@pytest.mark.parametrize(
    ("node", "data", "expected"),
    [
        (helper.make_node("Reshape", ["x", "s"], ["y"]), helper.make_tensor("s", TensorProto.INT64, [3], [3, 1, 2]), [3, 1, 2]),
        (helper.make_node("Clip", ["x", "", "u"], ["y"]), helper.make_tensor("u", TensorProto.FLOAT, [], [6.0]), [2, 3]),
    ],
    ids=["by a value", "an input is left out"],
)  # fmt: skip
def test_shapes_follow_from_types_and_values(
    node: onnx.NodeProto, data: onnx.TensorProto, expected: list[int]
) -> None:
    assert shape(inferred(node, **{data.name: data})["y"]) == expected


def test_what_onnx_refuses_is_an_error_of_one_line() -> None:
    with pytest.raises(InferenceError) as caught:
        inferred(helper.make_node("Concat", ["x"], ["y"], axis=7))
    assert "\n" not in str(caught.value)


def test_what_aborts_the_process_is_an_error() -> None:
    """Split with fewer outputs by its attribute than it has: on some releases onnx's C++ writes past the end of a list."""
    node = helper.make_node("Split", ["x"], ["a", "b", "c"], num_outputs=1)
    for _ in range(2):
        try:
            found = inferred(node)
        except InferenceError:
            continue
        assert len(found) <= 3


SOURCE = """<ir_version: 8, opset_import: ["":13]>
g (float[2,3,N] x, int64[k] u) => (float[2,3,N] y) <int64[2] to = {6, -1}> { y = Relu(x) }"""


def test_types_follow_from_inputs_attributes_and_constants_or_stay_unknown() -> None:
    scope = scopes(model(SOURCE), Weights(), result_ir_version=8)[0]
    cases = [
        (helper.make_node("Reshape", ["x", "to"], ["flat"]), 13, onnx.TensorProto.FLOAT, (6, None)),
        (helper.make_node("Cast", ["x"], ["wide"], to=onnx.TensorProto.DOUBLE), 9, onnx.TensorProto.DOUBLE, (2, 3, None)),
        (helper.make_node("ReduceMax", ["wide"], ["top"], axes=[2], keepdims=0), 12, onnx.TensorProto.DOUBLE, (2, 3)),
        (helper.make_node("Reshape", ["x", "u"], ["open"]), 13, onnx.TensorProto.FLOAT, None),
        (helper.make_node("Own", ["x"], ["own"], domain="mine"), 13, None, None),
        (helper.make_node("Relu", ["nothing"], ["r"]), 13, None, None),
    ]  # fmt: skip
    for node, opset, dtype, shape in cases:
        record_outputs(scope, node, opset)
        known = scope.value_type(node.output[0])
        assert (known.dtype, known.shape) == (dtype, shape), node.op_type


def test_nodes_alike_are_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scope = scopes(model(SOURCE), Weights(), result_ir_version=8)[0]
    asked: list[str] = []
    infer = node_inference.infer_node_outputs
    monkeypatch.setattr(
        node_inference,
        "infer_node_outputs",
        lambda *given: (asked.append(given[1].op_type), infer(*given))[1],
    )
    node_inference._answer.cache_clear()
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
