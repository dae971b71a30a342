"""The rewrite driver: it keeps everything that a visitor writes, for every kind of body."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import onnx
import onnx.parser
import pytest

from onnx_migrate.errors import CannotMigrate, MigrateError, Where
from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.weights import Weights
from onnx_migrate.rewrite.change_log import ChangeLog, Exactness
from onnx_migrate.rewrite.driver import Driver, Visitor
from onnx_migrate.rewrite.rewriter import Rewriter

Edit = Callable[[Rewriter], None]


class Editor(Visitor):
    """Applies `edit` to every node of one operator, and records the order of what the driver calls."""

    pass_name = "editor"

    def __init__(self, operator: str, edit: Edit) -> None:
        self.log, self.operator, self.edit = ChangeLog(), operator, edit
        self.calls: list[str] = []

    def enter(self, scope: Scope) -> None:
        self.calls.append(f"enter {scope.path}")

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        return opset if node.op_type == self.operator else None

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter | None:
        self.calls.append(node.name)
        rewriter = Rewriter(node, scope, version, version, Where(scope.path, node.name, node.op_type))
        self.edit(rewriter)
        return rewriter

    def leave(self, scope: Scope) -> None:
        self.calls.append(f"leave {scope.path}")


def drive(visitor: Visitor, proto: onnx.ModelProto) -> Driver:
    driver = Driver(visitor)
    for scope in scopes(proto, Weights(), result_ir_version=proto.ir_version):
        driver.body(scope, 17)
    return driver


def parse(body: str, rest: str = "", ir_version: int = 8) -> onnx.ModelProto:
    text = f'<ir_version: {ir_version}, opset_import: ["": 17, "own": 1]> g (float[2] x) => (float[2] y) {body} {rest}'
    proto = onnx.parser.parse_model(text)
    for index, node in enumerate(proto.graph.node):
        node.name = node.name or f"n{index}"
    return proto


def operators(body: onnx.GraphProto | onnx.FunctionProto) -> list[str]:
    return [node.op_type for node in body.node]


def write_all(rw: Rewriter) -> None:
    rw.set_input(0, rw.before("Abs", [rw.input(0)]))
    output = rw.output(0)
    rw.after("Exp", [rw.detach_output(0)], [output])


def replace_by_one(rw: Rewriter) -> None:
    rw.after("Abs", [rw.input(0)], [rw.output(0)])
    rw.remove()


def test_nodes_written_before_and_after_stand_around_their_node() -> None:
    proto = parse("{ a = Neg (x) b = Relu (a) y = Neg (b) }")
    editor = Editor("Relu", write_all)

    drive(editor, proto)

    assert operators(proto.graph) == ["Neg", "Abs", "Relu", "Exp", "Neg"]
    onnx.checker.check_model(proto, full_check=True)
    (change,) = editor.log.changes
    assert change.emitted == ("Abs", "Exp")
    assert [node.op_type for node in change.helpers] == ["Abs", "Exp"]
    assert (change.pass_name, change.version_before, change.version_after) == ("editor", 14, 14)


def test_a_reason_alone_is_a_change() -> None:
    proto = parse("{ a = Relu (x) y = Neg (a) }")
    before = proto.SerializeToString()
    editor = Editor("Relu", lambda rw: rw.note("it means the same"))

    drive(editor, proto)

    assert proto.SerializeToString() == before
    assert [change.reason for change in editor.log.changes] == ["it means the same"]


def test_a_removed_node_is_gone_though_as_many_nodes_stand_there_as_before() -> None:
    proto = parse("{ a = Relu (x) y = Neg (a) }")
    editor = Editor("Relu", replace_by_one)

    driver = drive(editor, proto)

    assert operators(proto.graph) == ["Abs", "Neg"]
    assert editor.log.changes[0].after is None
    assert driver.dead_values == {"x"}


def test_an_added_constant_may_have_no_reader() -> None:
    proto = parse("{ y = Relu (x) }")

    driver = drive(Editor("Relu", lambda rw: rw.note(rw.constant(np.zeros(1, np.int64), "count"))), proto)

    assert "n0_count" in driver.dead_values


def test_subgraphs_are_rewritten_before_their_node_and_functions_too() -> None:
    body = """{ c = Constant <value_int = 1> () k = Cast <to = 9> (c) y = If (k) <
        then_branch = t () => (z) { z = Relu (x) }, else_branch = e () => (w) { w = Relu (x) }> }"""
    proto = parse(body, '<domain: "own", opset_import: ["": 17]> f (p) => (q) { q = Relu (p) }')
    editor = Editor("Relu", write_all)

    drive(editor, proto)

    branches = [attribute.g for attribute in proto.graph.node[-1].attribute]
    bodies = [*branches, proto.functions[0]]
    assert [operators(item) for item in bodies] == [["Abs", "Relu", "Exp"]] * 3
    assert [change.where.scope for change in editor.log.changes] == [
        "graph/n2:then_branch",
        "graph/n2:else_branch",
        "function own:f",
    ]
    assert editor.calls[:4] == ["enter graph", "enter graph/n2:then_branch", "", "leave graph/n2:then_branch"]


def test_added_constant_nodes_stand_in_front_once_for_each_traversal() -> None:
    proto = parse("{ a = Relu (x) y = Relu (a) }", ir_version=3)

    def add_one(rw: Rewriter) -> None:
        rw.set_input(0, rw.before("Add", [rw.input(0), rw.constant(np.ones(2, np.float32), "one")]))

    editor = Editor("Relu", add_one)
    (scope,) = scopes(proto, Weights(), result_ir_version=3)
    driver = Driver(editor)
    driver.body(scope, 17)
    assert operators(proto.graph) == ["Constant", "Add", "Relu", "Add", "Relu"]

    editor.operator = "Neg"
    driver.body(scope, 17)
    assert operators(proto.graph) == ["Constant", "Add", "Relu", "Add", "Relu"]


def test_superseded_nodes_are_dropped_and_what_they_read_may_be_dead() -> None:
    proto = parse("{ a = Neg (x) b = Abs (a) y = Relu (b) }")

    def join(rw: Rewriter) -> None:
        rw.set_input(0, "x")
        rw.supersede("a", "b")

    driver = drive(Editor("Relu", join), proto)

    assert operators(proto.graph) == ["Relu"]
    assert driver.dead_values == {"a", "b", "x"}


class Repeating(Editor):
    repeats: ClassVar[bool] = True

    def start(self, node: onnx.NodeProto, scope: Scope, opset: int) -> int | None:
        return 1 if node.op_type == self.operator else None

    def rewrite(self, node: onnx.NodeProto, scope: Scope, version: int) -> Rewriter | None:
        if version >= 3 or node.op_type not in ("Relu", "Abs"):
            return None
        rewriter = Rewriter(node, scope, version + 1, 3, Where(scope.path, node.name, node.op_type))
        rewriter.set_input(0, rewriter.before("Abs" if node.op_type == "Relu" else "Neg", [node.input[0]]))
        rewriter.note(f"to {version + 1}", Exactness.EQUIVALENT if version == 2 else None)
        return rewriter


def test_nodes_of_a_rewrite_are_rewritten_depth_first_and_one_change_has_them_all() -> None:
    proto = parse("{ y = Relu (x) }")
    editor = Repeating("Relu", lambda rw: None)

    drive(editor, proto)

    # Relu at 1 wrote Abs and is at 2; that Abs wrote Neg; Relu at 2 wrote another Abs, which is at 3 and done.
    assert operators(proto.graph) == ["Neg", "Abs", "Abs", "Relu"]
    (change,) = editor.log.changes
    assert (change.reason, change.exactness) == ("to 2; to 3", Exactness.EQUIVALENT)
    assert [node.op_type for node in change.helpers] == ["Neg", "Abs", "Abs"]


def test_an_edit_that_changes_nothing_is_not_recorded() -> None:
    proto = parse("{ y = Relu (x) }")
    before = proto.SerializeToString()
    editor = Editor("Relu", lambda rw: None)

    (scope,) = scopes(proto, Weights(), result_ir_version=8)

    assert Driver(editor).body(scope, 17) is False
    assert (editor.log.changes, proto.SerializeToString()) == ([], before)


def fail_behind_a_node(rw: Rewriter) -> None:
    rw.before("Abs", [rw.input(0)])
    rw.refuse("has no equal")


def test_a_refusal_is_raised_or_the_node_is_kept_and_the_traversal_goes_on() -> None:
    proto = parse("{ a = Relu (x) y = Relu (a) }")
    with pytest.raises(CannotMigrate):
        drive(Editor("Relu", fail_behind_a_node), proto)

    class Patient(Editor):
        def handle_refusal(self, error: MigrateError) -> None:
            self.calls.append(f"refused {error.where.node if error.where else ''}")

    editor = Patient("Relu", fail_behind_a_node)
    drive(editor, proto)

    assert operators(proto.graph) == ["Relu", "Relu"]
    assert editor.calls == ["enter graph", "n0", "refused n0", "n1", "refused n1", "leave graph"]
