"""What a page draws of a result: changes as they are in it, from the original's node to the final ones."""

from __future__ import annotations

from typing import Any

import onnx
import onnx.parser

import onnx_migrate
from onnx_migrate.errors import Where
from onnx_migrate.files import load
from onnx_migrate.report.result_view import ResultView
from onnx_migrate.rewrite.change_log import Change, Exactness


def node(operator: str, reads: str, gives: str, name: str = "", **attributes: Any) -> onnx.NodeProto:
    return onnx.helper.make_node(operator, reads.split(), gives.split(), name=name, **attributes)


def changed(
    before: onnx.NodeProto, after: onnx.NodeProto | None, *helpers: onnx.NodeProto, reason: str = "r", **more: Any
) -> Change:  # fmt: skip
    data = [item.SerializeToString() for item in (before, *([after] if after else []), *helpers)]
    written = data[1] if after else None
    return Change(
        more.get("pass_name", "p"), Where(more.get("scope", "graph"), before.name, before.op_type), data[0], 1, written, 13, (),
        reason, more.get("exactness", Exactness.EXACT), 13, tuple(data[1 + (after is not None) :]),
    )  # fmt: skip


def result(text: str) -> Any:
    return load(
        onnx.parser.parse_model(
            f'<ir_version: 8, opset_import: ["": 13]> g (float[4] x) => (float[4] y) {{ {text} }}'
        )
    )


def test_a_node_that_two_passes_changed_is_one_change_to_the_node_of_the_result() -> None:
    first, second = node("Relu", "x", "y", alpha=1), node("Relu", "x", "y", alpha=2)
    changes = (
        changed(first, second, reason="one", pass_name="a"),
        changed(
            second,
            node("Elu", "x", "y", alpha=3.0),
            reason="two",
            pass_name="b",
            exactness=Exactness.EQUIVALENT,
        ),
    )
    view = ResultView.of(changes, result("y = Elu <alpha = 4.0> (x)"))

    (change,) = view.changes
    assert (change.before.op_type, change.operators) == ("Relu", "Relu-1 → Elu-6")
    assert change.after is not None
    assert change.after.attribute[0].f == 4, "as the result has it, and not as the pass wrote it"
    assert (change.pass_name, change.reason, change.exactness) == ("a, b", "one; two", Exactness.EQUIVALENT)


def test_a_node_that_the_simplifier_folded_or_fused_is_counted_and_not_drawn() -> None:
    changes = (
        changed(node("Unsqueeze", "x", "u"), node("Unsqueeze", "x axes", "u")),
        changed(node("BatchNormalization", "c", "y"), node("BatchNormalization", "c s b m v", "y")),
    )
    view = ResultView.of(changes, result("y = Abs (x)"))
    assert (view.changes, view.vanished) == ((), 2)
    assert [item.change for item in view.bodies[0].nodes] == [None, None, None]


def test_a_node_in_another_place_is_found_by_its_name() -> None:
    before, after = node("Clip", "x", "c", "clip"), node("Clip", "x lo", "c", "clip")
    proto = result("y = Clip (x)")
    proto.proto.graph.node[0].name = "clip"
    (change,) = ResultView.of((changed(before, after),), proto).changes
    assert change.after is not None
    assert list(change.after.output) == ["y"]


def test_a_change_of_a_helper_belongs_to_the_node_that_it_was_written_for() -> None:
    old, helper = node("Upsample", "x", "y"), node("Cast", "x", "h")
    changes = (
        changed(old, None, helper, node("Resize", "h", "y")),
        changed(helper, node("Identity", "x", "h")),
    )
    view = ResultView.of(changes, result("h = Identity (x) y = Resize (h)"))
    (change,) = view.changes
    assert change.after is None
    assert [item.op_type for item in change.helpers] == ["Identity", "Resize"]
    assert [item.change for item in view.bodies[0].nodes] == [None, 0, 0, None]


def test_a_node_that_became_what_it_was_is_no_change() -> None:
    relu = node("Relu", "x", "y")
    there = changed(relu, node("Relu", "x", "y", alpha=1))._replace(version_before=14)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 14]> g (float[4] x) => (float[4] y) { y = Relu (x) }'
    )
    assert ResultView.of((Change(*there),), load(model)).changes == ()


def test_the_graph_has_inputs_outputs_and_what_each_node_reads_without_constants() -> None:
    (body,) = ResultView.of(
        (), result("c = Constant <value_float = 1.0> () a = Add (x, c) y = Mul (a, x)")
    ).bodies
    assert [(item.name, item.operator, item.reads) for item in body.nodes] == [
        ("x", "input", ()), ("a", "Add", (0,)), ("y", "Mul", (1, 0)), ("y", "output", (2,)),
    ]  # fmt: skip


def test_of_other_bodies_those_with_a_change_are_viewed() -> None:
    text = """c = Constant <value = bool {1}> ()
    y = If (c) <then_branch = a () => (float[4] t) { t = Relu (x) }, else_branch = b () => (float[4] e) { e = Abs (x) }>"""
    old = node("Relu", "x", "t", consumed_inputs=[0])
    model = result(text)
    path = ResultView.of((), model)
    scope = "graph/y:then_branch"
    view = ResultView.of((changed(old, node("Relu", "x", "t"), scope=scope),), model)
    assert [item.path for item in path.bodies] == ["graph"]
    assert [item.path for item in view.bodies] == ["graph", scope]


def test_a_real_migration_shows_only_nodes_of_the_result() -> None:
    text = """<ir_version: 6, opset_import: ["": 9]> g (float[2,3] x) => (float[2,3] y) <float[3] w = {1, 2, 3}> {
      u = Unsqueeze <axes = [0]> (w)
      s = Squeeze <axes = [0]> (u)
      a = Add (x, s)
      y = Clip <min = 0.0, max = 1.0> (a)
    }"""
    migration = onnx_migrate.migrate(onnx.parser.parse_model(text), isolated=False)
    view = migration.viewed(migration.report).view
    assert view is not None
    outputs = {name for item in migration.structure.graph.node for name in item.output}
    assert len(migration.report.changes) == 3
    assert [change.before.op_type for change in view.changes] == ["Clip"]
    assert view.vanished == 2
    assert all(change.after is not None and set(change.after.output) <= outputs for change in view.changes)
    assert "simplification removed or fused them" in migration.html()
    assert "Unsqueeze-1" not in migration.html().partition("Operators</h2>")[0]
