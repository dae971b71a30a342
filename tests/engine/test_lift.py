"""The lift: every body from its own opset, every node or none, and in linear time."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.errors import CannotMigrate
from tests.harness import lift, model, random_feeds, run, same

SOFTMAX = """<ir_version: 4, opset_import: ["":9]>
g (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"""


def test_a_function_is_lifted_from_its_own_opset() -> None:
    source = model("""<ir_version: 8, opset_import: ["":15, "local":1]>
g (float[2,3,4] x) => (float[2,3,4] y) { y = local.Act(x) }
<domain: "local", opset_import: ["":11]> Act (a) => (b) { b = Softmax<axis=1>(a) }""")
    feeds = random_feeds(source)

    result, _ = lift(source, 17)

    assert [entry.version for entry in result.functions[0].opset_import] == [17]
    assert [entry.version for entry in result.opset_import if not entry.domain] == [17]
    alone = model(SOFTMAX)
    same(run(alone, feeds), run(result, feeds), "function of opset 11")


def test_a_name_from_an_outer_scope_is_never_given_again() -> None:
    source = model("""<ir_version: 6, opset_import: ["":11]>
g (bool c, float[2,3,4] x) => (float[2,3,4] y) {
  y_axes = Identity(x)
  y = If (c) <
    then_branch = t () => (float[2,3,4] a) { a_flat = Relu(y_axes)  a = Softmax<axis=1>(a_flat) },
    else_branch = e () => (float[2,3,4] a) { a_flat = Neg(y_axes)  a = Softmax<axis=1>(a_flat) }
  >
}""")
    feeds = {"c": np.array(True), "x": np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)}

    result, _ = lift(source, 17)

    onnx.checker.check_model(result)
    same(run(source, feeds), run(result, feeds), "then")
    feeds["c"] = np.array(False)
    same(run(source, feeds), run(result, feeds), "else")


def test_unsorted_nodes_are_sorted_and_it_is_said() -> None:
    source = model(SOFTMAX)
    node = helper.make_node("Relu", ["x0"], ["x"])
    source.graph.node.append(node)
    source.graph.input[0].name = "x0"

    result, log = lift(source, 13)

    assert result.graph.node[0].op_type == "Relu"
    assert "sorted" in [note.code for note in log.notes]


def test_a_cycle_is_refused() -> None:
    source = model(SOFTMAX)
    source.graph.node.append(helper.make_node("Relu", ["y"], ["z"]))
    source.graph.node[0].input[0] = "z"

    with pytest.raises(CannotMigrate, match="cycle") as caught:
        lift(source, 13)

    assert caught.value.code == "cycle"


def test_an_operator_nobody_knows_is_refused_with_its_place() -> None:
    source = model(SOFTMAX)
    source.graph.node[0].op_type = "Softermax"
    source.graph.node[0].name = "act"

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == "unknown-operator"
    assert "Softermax-9 'act'" in str(caught.value)


def test_a_newer_model_is_not_brought_down() -> None:
    with pytest.raises(CannotMigrate) as caught:
        lift(model(SOFTMAX), 8)

    assert caught.value.code == "downgrade"


def test_a_model_newer_than_onnx_is_refused() -> None:
    source = model(SOFTMAX)
    source.opset_import[0].version = 999

    with pytest.raises(CannotMigrate) as caught:
        lift(source, 13)

    assert caught.value.code == "too-new"


def test_a_node_of_an_older_form_is_lifted_from_where_it_is() -> None:
    source = model("""<ir_version: 7, opset_import: ["":13]>
g (float[1,2,3,4] x) => (float[1,2,6,8] y) <float[4] s = {1., 1., 2., 2.}> { y = Upsample<mode="nearest">(x, s) }""")

    result, log = lift(source, 17)

    assert [node.op_type for node in result.graph.node] == ["Resize"]
    assert "other-version" in [note.code for note in log.notes]
    feeds = random_feeds(source)
    source.opset_import[0].version = 9
    same(run(source, feeds), run(result, feeds), "Upsample stamped 13")


def test_the_alias_of_the_domain_stays_as_it_is() -> None:
    source = model(SOFTMAX)
    source.opset_import[0].domain = "ai.onnx"

    result, _ = lift(source, 13)

    assert [(entry.domain, entry.version) for entry in result.opset_import] == [("ai.onnx", 13)]


def test_other_domains_pass_through() -> None:
    source = model(SOFTMAX)
    source.opset_import.append(helper.make_opsetid("com.acme", 3))
    source.graph.node.append(helper.make_node("Thing", ["y"], ["z"], domain="com.acme", weird=1))

    result, _ = lift(source, 13)

    assert result.graph.node[-1].SerializeToString() == source.graph.node[-1].SerializeToString()
    assert [(entry.domain, entry.version) for entry in result.opset_import] == [("", 13), ("com.acme", 3)]


def test_constants_that_moved_leave_nothing_behind() -> None:
    source = model("""<ir_version: 6, opset_import: ["":11]>
g (float[1,2,4,4] x) => (float[1,2,8,8] y) {
  r = Constant<value = float[0] {}>()
  s = Constant<value = float[4] {1., 1., 2., 2.}>()
  y = Resize<mode="nearest">(x, r, s)
}""")

    result, _ = lift(source, 13)

    assert [node.op_type for node in result.graph.node] == ["Constant", "Resize"]


def test_lifting_is_linear() -> None:
    def seconds(count: int) -> float:
        value, nodes = "x", []
        for index in range(count):
            nodes.append(helper.make_node("Softmax", [value], [f"v{index}"], axis=1, name=f"n{index}"))
            value = f"v{index}"
        graph = helper.make_graph(
            nodes,
            "chain",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])],
            [helper.make_tensor_value_info(value, TensorProto.FLOAT, [2, 3, 4])],
        )
        chain = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
        start = time.process_time()
        lift(chain, 13)
        return time.process_time() - start

    seconds(500)
    small, large = min(seconds(1000) for _ in range(3)), min(seconds(4000) for _ in range(2))

    assert large < 4 * 2.0 * small
