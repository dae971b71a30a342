"""Who reads a value, in sub-graphs too, and how all of them read another one."""

from __future__ import annotations

import onnx
from onnx_migrate.passes.steps.control_flow import readers, rename_reads

from onnx_migrate.facts.scope import Scope, scopes
from onnx_migrate.model.model import Model
from tests.harness import model

SOURCE = """<ir_version: 8, opset_import: ["": 13]> g (float[2] x, bool c) => (float[2] a, float[2] y) {
  a = Abs (x)
  b = Add (x, a)
  y = If (c) <
    then_branch = t () => (float[2] p) { p = Mul (b, a) },
    else_branch = e () => (float[2] q) {
      d = Neg (b)
      q = If (c) < then_branch = tt () => (float[2] r) { r = Sub (d, a) },
                   else_branch = ee () => (float[2] s) { s = Identity (d) } > } >
}"""
LOOP = """<ir_version: 8, opset_import: ["": 13]> g (float[2] x, int64 n, bool c) => (float[2] y) {
  a = Abs (x)
  y = Loop (n, c, a) < body = b (int64 i, bool go, float[2] a) => (bool on, float[2] next)
    { on = Identity (go)  next = Add (a, a) } >
}"""


def _scope(proto: onnx.ModelProto) -> Scope:
    return next(iter(scopes(proto, Model(proto).weights, result_ir_version=8)))


def test_readers_are_found_in_all_sub_graphs() -> None:
    scope = _scope(model(SOURCE))

    assert sorted(readers(scope, "a")) == [("", 0), ("Add", 1), ("Mul", 1), ("Sub", 1)]
    assert sorted(readers(scope, "b")) == [("Mul", 0), ("Neg", 0)]
    assert sorted(readers(scope, "c")) == [("If", 0), ("If", 0)]
    assert not list(readers(scope, "y2"))


def test_all_reads_are_renamed() -> None:
    proto = model(SOURCE)

    rename_reads(proto.graph, "a", "z")

    scope = _scope(proto)
    assert not list(readers(scope, "a"))
    assert sorted(readers(scope, "z")) == [("", 0), ("Add", 1), ("Mul", 1), ("Sub", 1)]
    assert [list(node.output) for node in proto.graph.node] == [["a"], ["b"], ["y"]]


def test_a_value_of_the_same_name_inside_a_sub_graph_is_another_one() -> None:
    proto = model(LOOP)
    body = proto.graph.node[1].attribute[0].g

    rename_reads(proto.graph, "a", "z")

    assert list(proto.graph.node[1].input) == ["n", "c", "z"]
    assert list(body.node[1].input) == ["a", "a"]


def test_a_function_has_no_value_infos_to_rename() -> None:
    proto = model("""<ir_version: 8, opset_import: ["": 13, "local": 1]> g (float[2] x) => (float[2] y) { y = local.F (x) }
<domain: "local", opset_import: ["": 13]> F (x) => (y) { a = Abs (x)  y = Neg (a) }""")

    rename_reads(proto.functions[0], "a", "z")

    assert [list(node.input) for node in proto.functions[0].node] == [["x"], ["z"]]
