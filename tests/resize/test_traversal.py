"""The traversal of Resizes: which are visited, what is logged, and which dead values are removed."""

from __future__ import annotations

import importlib
from typing import Any

import onnx

from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model
from tests.steps import operators

nodes = importlib.import_module("onnx_migrate.passes.resize.traversal")

NESTED = """17 (float[1,1,4,4] x, bool c) => (float[a,b,d,e] y) <float[4] s = {1., 1., 2., 2.}, int64[1] zero = {0}> {
    [outer] r = Resize (x, , s)
    [gather] i = Gather (r, zero)
    [choose] y = If (c) <
        then_branch = t () => (float[a,b,d,e] p) { [inner] p = Resize (i, , s) },
        else_branch = f () => (float[a,b,d,e] q) { q = Relu (i) }
    >
}"""


def start(text: str) -> tuple[Any, onnx.ModelProto, ChangeLog]:
    carried, log = Model(model(text)), ChangeLog()
    return nodes.ResizeTraversal("step", carried, log, None), carried.proto, log


def test_every_resize_is_visited_and_an_unchanged_one_is_not_logged() -> None:
    traversal, proto, log = start(NESTED)
    before = proto.SerializeToString()
    seen: list[str] = []
    changed = traversal.visit_all(lambda place: seen.append(place.rw.node.name))
    traversal.end()
    assert (changed, seen, log.changes, log.notes) == (False, ["outer", "inner"], [], [])
    assert proto.SerializeToString() == before


def test_a_change_is_logged_and_constants_without_reader_are_removed() -> None:
    traversal, proto, log = start(NESTED)

    def unscale(place: Any) -> None:
        place.rw.set_input(2, "")
        place.rw.set_input(3, place.rw.constant(place.known.value("s").astype("int64"), "sizes"))
        place.rw.note("because")

    assert traversal.visit_all(unscale)
    traversal.end()
    assert [(str(c.where.scope), c.where.node, c.pass_name, c.reason) for c in log.changes] == [
        ("graph", "outer", "step", "because"),
        ("graph/choose:then_branch", "inner", "step", "because"),
    ]
    assert "s" not in {tensor.name for tensor in proto.graph.initializer}
    onnx.checker.check_model(proto)


def test_a_superseded_node_is_removed() -> None:
    traversal, proto, _ = (
        start("""17 (float[1,1,4,4] x) => (float[a,b,d,e] y) <float[4] s = {1., 1., 2., 2.}, float[4] t = {1., 1., 3., 3.}> {
    m = Resize (x, , t)
    y = Resize (m, , s)
}""")
    )

    def skip(place: Any) -> None:
        if place.rw.node.output[0] == "y":
            place.rw.set_input(0, "x")
            place.rw.supersede("m")

    assert traversal.visit_all(skip)
    traversal.end()
    assert [list(node.output) for node in proto.graph.node] == [["y"]]
    assert [tensor.name for tensor in proto.graph.initializer] == ["s"]


def test_nodes_with_attributes_of_the_call_and_of_older_opsets_are_not_visited() -> None:
    traversal, _, _ = start("""<ir_version: 8, opset_import: ["": 10, "own": 1]>
g (float[1,1,4,4] x) => (float[a,b,d,e] y) <float[4] s = {1., 1., 2., 2.}> { r = Resize (x, s) y = own.f (r, s) }
<domain: "own", opset_import: ["": 17]> f <m> (v, s) => (w) {
    u = Resize <mode: string = @m> (v, , s)
    w = Resize (u, , s)
}""")
    seen: list[str] = []
    traversal.visit_all(lambda place: seen.append(place.rw.node.output[0]))
    assert seen == ["w"]


def test_a_warning_is_logged_once() -> None:
    traversal, _, log = start(NESTED)
    for _ in range(2):
        traversal.visit_all(lambda place: traversal.warn(place, "look", code="resize-kept"))
    assert [note.subject for note in log.notes] == ["outer", "inner"]


def test_nodes_written_around_a_resize_stay_and_a_removed_one_does_not() -> None:
    traversal, proto, log = (
        start("""17 (float[1,1,4,4] x) => (float[a,b,d,e] y) <float[4] s = {1., 1., 2., 2.}, float[4] t = {1., 1., 3., 3.}> {
    [kept] m = Resize (x, , s)
    [removed] y = Resize (m, , t)
}""")
    )

    def surround(place: Any) -> None:
        rw = place.rw
        rw.set_input(0, rw.before("Neg", [rw.input(0)]))
        output = rw.output(0)
        rw.after("Abs", [rw.detach_output(0)], [output])

    def replace(place: Any) -> None:
        place.rw.after("Exp", [place.rw.input(0)], [place.rw.output(0)])
        place.rw.remove()

    traversal.visit_all(lambda place: surround(place) if place.rw.node.name == "kept" else replace(place))
    traversal.end()

    assert operators(proto) == ["Neg", "Resize", "Abs", "Exp"]
    assert [tensor.name for tensor in proto.graph.initializer] == ["s"]
    assert [change.emitted for change in log.changes] == [("Neg", "Abs"), ("Exp",)]
    onnx.checker.check_model(proto, full_check=True)
