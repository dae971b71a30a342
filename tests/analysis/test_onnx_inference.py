"""Shape inference: what it finds, and that long vectors cost nothing."""

from __future__ import annotations

import itertools
import time

import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.analysis.onnx_inference import LONG, InferenceError, infer_shapes
from onnx_migrate.model.tensors import mark_external


def net(length: int, count: int = 1, *, listed: bool = False) -> onnx.ModelProto:
    """Add a vector of `length`, whose values are elsewhere, to x[1] `count` times."""
    tensor = TensorProto(name="w", dims=[length], data_type=TensorProto.FLOAT)
    mark_external(tensor, "elsewhere", 0, 4 * length)
    names = ["x", *(f"t{index}" for index in range(count))]
    nodes = [helper.make_node("Add", [a, "w"], [b]) for a, b in itertools.pairwise(names)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])]
    if listed:
        inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [length]))
    graph = helper.make_graph(
        nodes, "g", inputs, [helper.make_tensor_value_info(names[-1], TensorProto.FLOAT, None)], [tensor]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def dims(value: onnx.ValueInfoProto) -> list[int]:
    return [dim.dim_value for dim in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("listed", [False, True])
def test_a_long_vector_costs_nothing(listed: bool) -> None:
    given = net(1 << 23, 8, listed=listed)
    start = time.process_time()
    found = infer_shapes(given)
    assert time.process_time() - start < 0.5
    assert found.graph.input == given.graph.input
    assert list(found.graph.initializer) == list(given.graph.initializer)
    assert {value.name for value in found.graph.value_info} == {f"t{index}" for index in range(7)}


def test_a_long_input_costs_nothing_either() -> None:
    given = net(1 << 23, 8)
    given.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1 << 23
    start = time.process_time()
    found = infer_shapes(given)
    assert time.process_time() - start < 0.5
    assert found.graph.input == given.graph.input
    assert [dims(value) for value in (*found.graph.value_info, *found.graph.output)] == [[1 << 23]] * 8


def test_a_short_vector_keeps_its_length() -> None:
    assert dims(infer_shapes(net(LONG)).graph.output[0]) == [LONG]


def test_values_are_followed() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
g (float[2,6] x) => (float[a,b] y) <int64[1] one = {1}, int64[1] zero = {0}, int64[1] all = {-1}> {
  s = Shape(x) n = Slice(s, zero, one) t = Concat<axis = 0>(n, all) r = Reshape(x, t) y = Relu(r)
}""")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert dims(infer_shapes(model).graph.output[0]) == [2, 6]


def test_what_onnx_throws_is_told_in_one_line() -> None:
    model = net(4)
    model.graph.node[0].domain = "never.imported"
    with pytest.raises(InferenceError) as caught:
        infer_shapes(model)
    assert "\n" not in str(caught.value)
    assert "never.imported" in str(caught.value)


@pytest.mark.parametrize("operator", ["LabelEncoder", "DictVectorizer"])
@pytest.mark.parametrize("place", ["graph", "branch", "function"])
def test_ml_operators_of_an_unknown_type_do_not_kill_the_process(operator: str, place: str) -> None:
    opaque = helper.make_node("Opaque", ["x"], ["u"], domain="org.example")
    node = helper.make_node(operator, ["u"], ["v"], domain="ai.onnx.ml")
    imports = [helper.make_opsetid(domain, 1) for domain in ("org.example", "ai.onnx.ml", "local")]
    imports.append(helper.make_opsetid("", 17))
    functions = []
    nodes = [opaque, node]
    if place == "branch":
        branches = {
            name: helper.make_graph([node], name, [], [onnx.ValueInfoProto(name="v")])
            for name in ("then_branch", "else_branch")
        }
        nodes = [opaque, helper.make_node("If", ["c"], ["w"], **branches)]
    elif place == "function":
        functions = [helper.make_function("local", "F", ["u"], ["v"], [node], imports)]
        nodes = [opaque, helper.make_node("F", ["u"], ["w"], domain="local")]
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.INT64, [2]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [])
    proto = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=8)
    before = proto.SerializeToString()

    infer_shapes(proto)

    assert proto.SerializeToString() == before


def test_ml_operators_of_an_input_keep_their_types() -> None:
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", classes_strings=["a"])
    graph = helper.make_graph(
        [node, helper.make_node("Identity", ["y"], ["z"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.INT64, [2])],
        [],
    )
    imports = [helper.make_opsetid("ai.onnx.ml", 1), helper.make_opsetid("", 17)]
    inferred = infer_shapes(helper.make_model(graph, opset_imports=imports, ir_version=8))
    assert [value.type.tensor_type.elem_type for value in inferred.graph.value_info] == [
        TensorProto.STRING
    ] * 2


def test_a_dequantize_linear_of_unknown_type_does_not_crash() -> None:
    """onnx 1.16 would, from version 19 on."""
    proto = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 19, "custom": 1]> g (float[2] x) => (y) <float s = {0.5}, uint8 z = {3}> {
        q = custom.Quantize (x) r = Identity (q) y = DequantizeLinear (r, s, z) }"""
    )
    assert [node.op_type for node in infer_shapes(proto).graph.node][:2] == ["Quantize", "Identity"]


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("ir", [3, 8])
def test_steps_of_a_slice_are_known_whether_or_not_the_inputs_list_them(ir: int, listed: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: {ir}, opset_import: ["": 21]> g (float[2,4] x{", int64[1] t" if listed else ""}) => (float[a,b] y)
            <int64[1] s = {{-2}}, int64[1] e = {{1000}}, int64[1] t = {{2}}> {{ y = Slice (x, s, e, "", t) }}"""
    )
    found = infer_shapes(model)
    assert found.graph.input == model.graph.input
    assert dims(found.graph.output[0]) == [1, 4]
