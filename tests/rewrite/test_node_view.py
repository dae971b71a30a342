"""What adapters may ask of a node: values that are known, attributes resolved, and refusals that name the node."""

from __future__ import annotations

import onnx.parser
import pytest
from onnx import TensorProto

from onnx_migrate.errors import CannotMigrate, Where
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.node_view import NodeView

TEXT = """<ir_version: 8, opset_import: ["": 17, "own": 1]>
g (float[N,3] x, float16 bare) => (z) <int64[2] axes = {0, 2}> {
    u = own.unknown (x)
    z = own.Op <mode = "linear", scales = [1.5, 2.0], axis = 3> (x, , axes, u)
}
<domain: "own", opset_import: ["": 17]> f <m> (v) => (w) { w = Softmax <axis: int = @m> (v) }"""


def view(body: int = 0, node: int = -1) -> NodeView:
    proto = onnx.parser.parse_model(TEXT)
    proto.graph.input[1].type.tensor_type.ClearField("shape")
    scope = scopes(proto, Weights(), result_ir_version=8)[body]
    found = scope.body.node[node]
    return NodeView(found, scope, Where("graph", "n", found.op_type, 1, 2))


def test_types_and_shapes_come_from_declarations_and_constants() -> None:
    node = view()

    assert (node.dtype("x"), node.shape("x"), node.rank("x")) == (TensorProto.FLOAT, (None, 3), 2)
    assert (node.dtype("axes"), node.shape("axes")) == (TensorProto.INT64, (2,))
    assert (node.dtype("bare"), node.rank("bare"), node.dtype("u")) == (TensorProto.FLOAT16, None, None)


def test_constants_are_read_and_other_values_are_not() -> None:
    node = view()

    array = node.constant_value("axes")

    assert array is not None
    assert array.tolist() == [0, 2]
    assert node.constant_value("x") is None


def test_left_out_inputs_and_outputs_are_empty_names() -> None:
    node = view()

    assert [node.input(index) for index in range(5)] == ["x", "", "axes", "u", ""]
    assert (node.output(0), node.output(1)) == ("z", "")
    assert (node.is_read("u"), node.is_read("z"), node.is_read("bare")) == (True, True, False)


def test_attributes_are_python_values() -> None:
    node = view()

    assert (node.get("mode"), node.get("scales"), node.get("axis"), node.get("none", 7)) == (
        "linear",
        [1.5, 2.0],
        3,
        7,
    )


def test_what_is_needed_and_unknown_is_refused_with_the_node_and_a_hint() -> None:
    with pytest.raises(CannotMigrate, match=r"'n'.*: the element type of 'u' is unknown") as error:
        view().need_dtype("u")
    assert (error.value.code, bool(error.value.hint)) == ("needs-type", True)

    with pytest.raises(CannotMigrate, match="number of axes of 'bare'") as error:
        view().need_rank("bare")
    assert error.value.code == "needs-rank"


def test_a_long_reason_is_cut() -> None:
    with pytest.raises(CannotMigrate) as error:
        view().refuse(f"its tiles are {[0.5] * 2_000}, for an input of 3 axes")
    assert error.value.reason.startswith("its tiles are [0.5, 0.5,")
    assert error.value.reason.endswith("0.5], for an input of 3 axes (10,038 characters)")
    assert len(error.value.reason) < 1_600


def test_an_attribute_that_each_call_sets_is_refused_when_its_value_is_needed() -> None:
    node = view(body=1)

    assert node.attribute("axis") is not None
    with pytest.raises(CannotMigrate, match="caller of the function") as error:
        node.get("axis")
    assert error.value.code == "needs-value"
