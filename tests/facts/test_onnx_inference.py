"""Inference of whole models: long vectors, fragile operators, skeletons, and what was given up."""

from __future__ import annotations

import itertools
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.facts.onnx_inference import (
    LONG,
    InferenceError,
    cannot_infer,
    cannot_propagate,
    give_up,
    infer_shapes,
    remembering,
    skeleton,
)
from onnx_migrate.model.weights import INLINE_LIMIT, mark_external
from onnx_migrate.process import OutOfMemory
from tests.campaigns.hostile import growth
from tests.harness import model
from tests.support.skips import Elsewhere, skip
from tests.support.versions import ONNX


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


@pytest.mark.parametrize(("length", "listed"), [(1, False), (1, True), (1 << 23, False)])
def test_a_long_vector_costs_nothing(length: int, listed: bool) -> None:
    """As a weight, which may be listed as an input, and as an input of this length."""
    given = net(1 << 23, 8, listed=listed)
    given.graph.input[0].type.tensor_type.shape.dim[0].dim_value = length
    start = time.process_time()
    found = infer_shapes(given)
    assert time.process_time() - start < 0.5
    assert found.graph.input == given.graph.input
    assert list(found.graph.initializer) == list(given.graph.initializer)
    assert {value.name for value in found.graph.value_info} == {f"t{index}" for index in range(7)}
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


TEXT = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,5000] x) => (y) <int64[2] shape = {50, -1}> { a = Add(x, big) k = Constant() b = Add(a, k) y = Reshape(b, shape) }"""


def test_large_data_is_left_out_wherever_it_is_and_types_are_inferred_all_the_same() -> None:
    source = model(TEXT)
    big = numpy_helper.from_array(np.ones((1, 5000), np.float32), "big")
    source.graph.initializer.append(big)
    source.graph.node[1].attribute.append(helper.make_attribute("value", big))
    before = source.SerializeToString()

    copy = skeleton(source)

    assert source.SerializeToString() == before
    assert copy.ByteSize() < INLINE_LIMIT
    assert not copy.graph.initializer[1].raw_data
    assert not copy.graph.node[1].attribute[0].t.raw_data
    inferred = onnx.shape_inference.infer_shapes(copy, data_prop=True).graph.output[0]
    assert [dim.dim_value for dim in inferred.type.tensor_type.shape.dim] == [50, 100]


def test_data_up_to_the_limit_stays() -> None:
    source = model(TEXT)
    source.graph.initializer.append(numpy_helper.from_array(np.ones(INLINE_LIMIT, np.int8), "big"))

    assert len(skeleton(source).graph.initializer[1].raw_data) == INLINE_LIMIT


NO_ROOM = OutOfMemory(1 << 30)


def test_nothing_is_remembered_outside_a_block() -> None:
    give_up(NO_ROOM, propagate=True)
    assert not cannot_propagate()
    with remembering() as found:
        assert not found.reasons


def test_a_block_inside_another_adds_to_it() -> None:
    with remembering() as outer, remembering() as inner:
        give_up(NO_ROOM, propagate=True)
        assert cannot_propagate()
        assert not cannot_infer()
        give_up(NO_ROOM, propagate=False)
        assert "out of memory (limit 1.0 GB)" in cannot_infer()
        assert outer is inner
        assert len(outer.reasons) == 2
    assert not cannot_propagate()
    assert not cannot_infer()


def test_inference_is_not_tried_again() -> None:
    model = onnx.ModelProto(ir_version=8)
    with remembering():
        give_up(NO_ROOM, propagate=False)
        with pytest.raises(InferenceError, match="did not finish: out of memory"):
            infer_shapes(model)


def test_shapes_are_inferred_without_propagation_where_that_takes_too_much() -> None:
    with remembering() as found:
        inferred = infer_shapes(growth.doubled_tensors())
    if ONNX < (1, 18):
        skip("onnx 1.16 and 1.17 stop at such a length", Elsewhere.NEWEST)
    sizes = {value.name: value.type.tensor_type.shape.dim[0].dim_value for value in inferred.graph.value_info}
    assert sizes["d38"] == 2**40
    assert len(found.reasons) == 1
    assert "data propagation did not finish: out of memory" in found.reasons[0]
