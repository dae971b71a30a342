"""An If whose condition follows from constants and fixed dims becomes its branch, for every runtime and in every body."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx.reference import ReferenceEvaluator
from onnx_migrate.passes.control_flow.known_branches import KnownBranches

import onnx_migrate
from onnx_migrate.model.graphs import all_nodes
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import model

KNOWN = "sh = Shape (x) d = Gather (sh, one) c = Equal (d, one) "
BRANCHES = """<then_branch = t () => (float[a, b] p) { s = Squeeze (x, ax) p = Exp (s) },
    else_branch = e () => (float[a, b, c] q) { q = Neg (x) }>"""
HEAD = "17 (float[B,1,S] x, bool u) => (float y) <int64 one = {1}, int64[1] ax = {1}, bool yes = {1}, bool[1] no = {0}> "
FUNCTION = """<ir_version: 8, opset_import: ["": 17, "l": 1]> g (float[B,1,S] x, bool u) => (float[B,S] y) { y = l.f (x) }
<domain: "l", opset_import: ["": 17]> f (x) => (y) { one = Constant <value_int = 1> () ax = Constant <value_ints = [1]> () """

MODELS = {
    "a dim": HEAD + f"{{ {KNOWN} y = If (c) {BRANCHES} }}",
    "an initializer": HEAD + f"{{ y = If (no) {BRANCHES} }}",
    "a Constant": HEAD + f"{{ k = Constant <value_int = 1> () c = Cast <to = 9> (k) y = If (c) {BRANCHES} }}",
    "logic": HEAD + f"{{ {KNOWN} n = Not (c) o = Or (n, no) y = If (o) {BRANCHES} }}",
    "a value around the branch": HEAD
    + "{ z = Abs (x) y = If (yes) <then_branch = t () => (float[a,b,c] p) { p = Identity (z) },"
    " else_branch = e () => (float[a,b] q) { q = Squeeze (z, ax) }> }",
    "an initializer of the branch": HEAD
    + "{ y = If (yes) <then_branch = t () => (float[2] p) <float[2] p = {1, 2}> { },"
    " else_branch = e () => (float[1] q) <float[1] q = {1}> { }> }",
    "an output twice": HEAD
    + "{ v, w = If (yes) <then_branch = t () => (float[a,b,c] p, float[a,b,c] p) { p = Exp (x) },"
    " else_branch = e () => (float[a,b,c] q, float[a,b,c] r) { q = Neg (x) r = Abs (x) }> y = Add (v, w) }",
    "an output that is left out": HEAD
    + '{ "", y = If (yes) <then_branch = t () => (float[a,b,c] p, float[a,b,c] o) { p = Exp (x) o = Neg (p) },'
    " else_branch = e () => (float[a,b,c] q, float[a,b,c] r) { q = Neg (x) r = Abs (x) }> }",
    "two in a row": HEAD
    + f"{{ {KNOWN} v = If (c) {BRANCHES} s2 = Shape (v) r = Size (s2) two = Add (one, one) e = Equal (r, two)"
    " y = If (e) <then_branch = t () => (float[a,b] p) { p = Exp (v) },"
    " else_branch = e () => (float q) { w = Size (v) q = Cast <to = 1> (w) }> }",
    "inside a branch": HEAD
    + f"{{ {KNOWN} y = If (u) <then_branch = t () => (float[a,b] v) {{ v = If (c) {BRANCHES} }},"
    " else_branch = e () => (float[a,b] w) { w = Squeeze (x, ax) }> }",
    "inside a known branch": HEAD
    + f"{{ {KNOWN} y = If (yes) <then_branch = t () => (float[a,b] v) {{ v = If (c) {BRANCHES} }},"
    " else_branch = e () => (float[a,b] w) { w = Squeeze (x, ax) }> }",
    "inside a Loop": HEAD
    + f'{{ {KNOWN} y = Loop (one, "", x) <body = b (int64 i, bool k, float[a,1,c] v) => (bool o, float[a,1,c] w)'
    " { o = Identity (k) w = If (c) <then_branch = t () => (float[a,b,c] p) { p = Exp (v) },"
    " else_branch = e () => (float[a,b,c] q) { q = Neg (v) }> }> }",
    "in a function": FUNCTION + f"{KNOWN} y = If (c) {BRANCHES} }}",
    "a loop inside the branch": HEAD
    + '{ y = If (yes) <then_branch = t () => (float[a,b,c] p) { m = Abs (x) p = Loop (one, "", m) <body = b (int64 i, bool k,'
    " float[a,1,c] v) => (bool k, float[a,1,c] w) { w = Add (v, m) }> },"
    " else_branch = e () => (float[a,b,c] q) { q = Neg (x) }> }",
}


def built(name: str) -> onnx.ModelProto:
    proto = model(MODELS[name])
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    return proto


def results(proto: onnx.ModelProto) -> Iterator[list[np.ndarray]]:
    # ONNX Runtime 1.32 loses outputs of an If that it folds itself.
    session = ReferenceEvaluator(proto)
    for sizes in ((2, 1, 3), (1, 1, 1)):
        x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes) - 1
        for u in (True, False):
            yield session.run(None, {"x": x, "u": np.array(u)})


@pytest.mark.parametrize("name", MODELS)
def test_a_known_condition_leaves_its_branch(name: str) -> None:
    proto = built(name)
    found = Model(built(name))

    KnownBranches().run(found, ChangeLog())

    others = 1 if name == "inside a branch" else 0
    assert sum(node.op_type == "If" for node in all_nodes(found.proto)) == others
    for before, after in zip(results(proto), results(found.proto), strict=True):
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_only_the_condition_needed_goes() -> None:
    found = onnx_migrate.migrate(built("a dim"), runtime="ncnn", verify="off").model

    assert [node.op_type for node in found.graph.node] == ["Squeeze", "Exp"]


def test_a_condition_of_values_stays() -> None:
    proto = model(HEAD + f"{{ {KNOWN} y = If (u) {BRANCHES} }}")
    before = proto.SerializeToString()

    found = KnownBranches().run(Model(proto), ChangeLog())

    assert found.proto.SerializeToString() == before


def test_a_size_that_is_made_dynamic_is_not_known() -> None:
    text = """17 (float[1,3] x) => (float[a,b] y) <int64 one = {1}, int64 zero = {0}> { sh = Shape (x) d = Gather (sh, zero)
    c = Equal (d, one) y = If (c) <then_branch = t () => (float[a,b] p) { p = Exp (x) },
    else_branch = e () => (float[a,b] q) { q = Neg (x) }> }"""

    found = onnx_migrate.migrate(
        model(text), runtime="onnxruntime==1.20", dynamic={"x": ["N", 3]}, verify="off"
    ).model

    session = ort.InferenceSession(found.SerializeToString())
    for size in (1, 2):
        x = np.ones((size, 3), np.float32)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], np.exp(x) if size == 1 else -x)
