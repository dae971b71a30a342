"""The lift: every body from its own opset, every node or none, and in linear time."""

from __future__ import annotations

import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.engine.steps import lift as lift_module
from onnx_migrate.engine.steps.lift import Lift
from onnx_migrate.engine.steps.step import Direction, Step
from onnx_migrate.facts.scope import scopes
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from onnx_migrate.rewrite.driver import Driver
from onnx_migrate.rewrite.rewriter import Rewriter
from tests.harness import model, random_feeds, run, same
from tests.steps import lift, operators, refuses

SOFTMAX = "9 (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"


def test_a_function_is_lifted_from_its_own_opset() -> None:
    source = model("""15 (float[2,3,4] x) => (float[2,3,4] y) { y = local.Act(x) }
<domain: "local", opset_import: ["":11]> Act (a) => (b) { b = Softmax<axis=1>(a) }""")
    feeds = random_feeds(source)

    result, _ = lift(source, 17)

    assert [entry.version for entry in result.functions[0].opset_import] == [17]
    assert [entry.version for entry in result.opset_import if not entry.domain] == [17]
    alone = model(SOFTMAX)
    same(run(alone, feeds), run(result, feeds), "function of opset 11")


def test_a_name_of_an_outer_scope_is_not_used_again() -> None:
    source = model("""11 (bool c, float[2,3,4] x) => (float[2,3,4] y) { y_axes = Identity(x) y = If (c) <
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


def test_unsorted_nodes_are_sorted_and_a_note_says_so() -> None:
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

    refuses("cycle", lift, source, 13, match="cycle")


def test_an_unknown_operator_is_refused_with_the_name_of_its_node() -> None:
    source = model(SOFTMAX)
    source.graph.node[0].op_type = "Softermax"
    source.graph.node[0].name = "act"

    error = refuses("unknown-operator", lift, source, 13)
    assert "'act' (Softermax-9)" in str(error)


def test_a_model_newer_than_the_target_is_refused() -> None:
    refuses("downgrade", lift, SOFTMAX, 8)


def test_a_model_newer_than_onnx_is_refused() -> None:
    source = model(SOFTMAX)
    source.opset_import[0].version = 999

    refuses("too-new", lift, source, 13)


def test_a_node_of_an_older_version_is_lifted_from_that_version() -> None:
    source = model(
        '13 (float[1,2,3,4] x) => (float[1,2,6,8] y) <float[4] s = {1., 1., 2., 2.}> { y = Upsample<mode="nearest">(x, s) }'
    )

    result, log = lift(source, 17)

    assert operators(result) == ["Resize"]
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


def test_constants_that_lost_their_reader_are_removed() -> None:
    source = model("""11 (float[1,2,4,4] x) => (float[1,2,8,8] y) { r = Constant<value = float[0] {}>()
  s = Constant<value = float[4] {1., 1., 2., 2.}>()
  y = Resize<mode="nearest">(x, r, s)
}""")

    result, _ = lift(source, 13)

    assert operators(result) == ["Constant", "Resize"]


@pytest.mark.long
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


def stepped(
    monkeypatch: pytest.MonkeyPatch, steps: dict[tuple[str, int], Step]
) -> tuple[list[str], ChangeLog]:
    """Lift x -> Relu -> y from opset 6 to 14 by these steps; return the operators of the result and the log."""

    def following(direction: Direction, domain: str, operator: str, version: int, target: int) -> Step | None:
        found = [to for name, to in steps if name == operator and version < to <= target]
        return steps[operator, min(found)] if found else None

    monkeypatch.setattr(lift_module, "next_step", following)
    proto = model("6 (float[2] x) => (float[2] y) { [n] y = Relu(x) }")
    log = ChangeLog()
    (scope,) = scopes(proto, Weights(), result_ir_version=8)
    Driver(Lift(proto, 14, log)).body(scope, 6)
    return operators(proto), log


def surround(node: onnx.NodeProto, rw: Rewriter) -> None:
    rw.set_input(0, rw.before("Abs", [rw.input(0)]))
    output = rw.output(0)
    rw.after("Exp", [rw.detach_output(0)], [output])


def replace(node: onnx.NodeProto, rw: Rewriter) -> None:
    rw.after("Neg", [rw.before("Sign", [rw.input(0)])], [rw.output(0)])
    rw.remove()


def test_nodes_that_adapters_write_are_lifted_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = {
        ("Relu", 13): Step(Direction.UP, "", "Relu", 13, surround, reason="surrounded"),
        ("Abs", 14): Step(
            Direction.UP, "", "Abs", 14, replace, reason="replaced", exactness=Exactness.EQUIVALENT
        ),
        ("Relu", 14): Step(
            Direction.UP, "", "Relu", 14, reason="another kernel", exactness=Exactness.EQUIVALENT
        ),
    }

    operators, log = stepped(monkeypatch, steps)

    assert operators == ["Sign", "Neg", "Relu", "Exp"]
    (change,) = log.changes
    assert change.emitted == ("Abs", "Exp", "Sign", "Neg")
    assert [node.op_type for node in change.helpers] == ["Sign", "Neg", "Exp"]
    assert (change.reason, change.exactness) == ("surrounded; another kernel", Exactness.EQUIVALENT)


def test_a_node_that_an_adapter_removes_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    operators, log = stepped(
        monkeypatch, {("Relu", 13): Step(Direction.UP, "", "Relu", 13, replace, reason="replaced")}
    )

    assert operators == ["Sign", "Neg"]
    assert [change.after for change in log.changes] == [None]


def test_an_adapter_that_raises_is_named_with_its_node(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(node: onnx.NodeProto, rw: Rewriter) -> None:
        raise KeyError("axis")

    error = refuses(
        "adapter-failed",
        stepped,
        monkeypatch,
        {("Relu", 13): Step(Direction.UP, "", "Relu", 13, broken)},
        match="relu-13 raised KeyError: 'axis'",
    )
    assert error.where is not None
    assert error.where.node == "n"


def test_a_value_of_a_later_version_is_not_read_by_it_where_the_inputs_differ() -> None:
    """ONNX Runtime ran cubic before opset 11; a Resize-13 would take the scales for the roi."""
    source = model(
        '10 (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[4] s = {1, 1, 2, 2}> { y = Resize <mode = "cubic"> (x, s) }'
    )
    result, log = lift(source, 13)
    assert "other-version" not in [note.code for note in log.notes]
    assert list(result.graph.node[0].input) == ["x", "", "s"]
