"""The view of two models for a page: which nodes, inputs and outputs have a mark, and the entry of each mark."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.difference import MatchedModels
from onnx_migrate.report.body_view import BodyView
from onnx_migrate.report.diff_view import DiffView, file_names
from tests.harness import model

NET = """17 (float[2,4] x) => (float[2,4] y) <float[4] w = {1.,2.,3.,4.}> {
  [n0] a = Relu (x) [n1] b = Mul (a, w) [n2] c = LeakyRelu <alpha = 0.1> (b) [n3] y = Add (c, x)
}"""

BRANCHES = """17 (bool k, float[2] x) => (float[2] y) <float[2] w = {1.,2.}> {
  [r] r = Relu (x)
  [i] y = If (k) <
    then_branch = t () => (float[2] p) { [m] p = Mul (r, w) },
    else_branch = e () => (float[2] q) { [n] q = Neg (r) }
  >
  [z] z = Abs (r)
}"""

LOOP = """17 (int64 n, float[2] x) => (float[2] y) {
  t = Constant <value = bool {1}> ()
  [outer] y = Loop (n, t, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] u) {
    [inner] u = Loop (n, c, s) <body = b2 (int64 j, bool c2, float[2] s2) => (bool d2, float[2] u2) {
      d2 = Identity (c2)
      [deep] u2 = Relu (s2)
    }>
    d = Identity (c)
  }>
}"""

FUNCTION = """<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2] x) => (float[2] y) { [call] y = f.Block (x) }
<domain: "f", opset_import: ["": 17]> Block (v) => (w) { [u] u = Relu (v)  [w] w = Neg (u) }"""


def view(one: str | onnx.ModelProto, two: str | onnx.ModelProto) -> DiffView:
    return MatchedModels.of(model(one), model(two)).view


def marks(body: BodyView) -> dict[str, str]:
    return {node.name: node.mark for node in body.nodes if node.change is not None}


def test_changed_removed_and_added_nodes_are_marked_in_their_model() -> None:
    two = NET.replace("0.1", "0.2").replace("[n0] a = Relu (x)", "").replace("Mul (a, w)", "Mul (x, w)")
    two = two.replace("y = Add (c, x)", "d = Abs (c) [n4] y = Add (d, x)").replace("[n3] d", "[n3] d")
    ((before, after),) = view(NET, two.replace("[n3] d", "[new] d")).graphs

    assert marks(before) == {"n0": "removed", "n1": "changed", "n2": "changed", "n3": "changed"}
    assert marks(after) == {"n1": "changed", "n2": "changed", "new": "added", "n4": "changed"}


def test_equal_models_have_no_mark() -> None:
    same = view(NET, NET.replace("a = Relu", "q = Relu").replace("Mul (a", "Mul (q"))

    assert same.same
    assert not any(marks(body) for pair in same.graphs for body in pair)


def test_a_node_that_reads_a_changed_weight_is_marked_with_the_entry_of_the_weight() -> None:
    found = view(NET, NET.replace("4.}", "5.}"))
    ((before, after),) = found.graphs
    (entry,) = found.of_kind("weight")

    for body in (before, after):
        assert marks(body) == {"n1": "changed"}
        assert [node.change for node in body.nodes if node.name == "n1"] == [entry.place]


@pytest.mark.parametrize(
    ("old", "new", "branch", "name"),
    [("Neg (r)", "Abs (r)", "else", "n"), ("{1.,2.}", "{1.,3.}", "then", "m"), ("Mul (r, w)", "Mul (w, r)", "then", "m")],
)  # fmt: skip
def test_a_node_whose_branch_differs_is_marked_too(old: str, new: str, branch: str, name: str) -> None:
    (graph, _), *inner = view(BRANCHES, BRANCHES.replace(old, new)).graphs

    assert marks(graph) == {"i": "changed"}
    assert [(body.path, marks(body)) for body, _ in inner] == [
        (f"graph/i:{branch}_branch", {name: "changed"})
    ]


def test_all_loops_around_a_changed_node_are_marked() -> None:
    graphs = view(LOOP, LOOP.replace("u2 = Relu", "u2 = Abs")).graphs

    assert [marks(before) for before, _ in graphs] == [
        {"outer": "changed"}, {"inner": "changed"}, {"deep": "changed"},
    ]  # fmt: skip


def test_calls_of_a_changed_function_are_marked() -> None:
    (graph, _), (body, _) = view(FUNCTION, FUNCTION.replace("Neg", "Abs")).graphs

    assert marks(graph) == {"call": "changed"}
    assert marks(body) == {"w": "changed"}


def test_inputs_and_outputs_that_differ_are_marked() -> None:
    two = NET.replace("float[2,4] x)", "float[N,4] x, float[2,4] more)")
    ((before, after),) = view(NET, two).graphs

    assert marks(before) == {"x": "changed"}
    assert marks(after) == {"x": "changed", "more": "added"}


def test_a_change_has_the_names_of_the_first_model_and_the_constants_of_both() -> None:
    two = NET.replace("0.1", "0.2").replace("b", "other")
    ((_, change),) = view(NET, two).changes

    assert change.after is not None
    assert list(change.after.input) == list(change.before.input) == ["b"]
    assert change.reason == "alpha: 0.1 → 0.2"


def test_a_constant_with_other_values_is_not_drawn_with_the_values_of_one_model() -> None:
    one = NET.replace("LeakyRelu <alpha = 0.1> (b)", "Mul (b, w)")
    two = NET.replace("LeakyRelu <alpha = 0.1> (b)", "Div (b, w)")
    ((_, change),) = view(one, two).changes
    assert [tensor.name for tensor in change.constants] == ["w"]

    ((_, change),) = view(one, two.replace("4.}", "5.}")).changes
    assert not change.constants


def test_an_output_of_a_branch_is_marked_under_both_of_its_names() -> None:
    two = BRANCHES.replace("(float[2] q) { [n] q = Neg (r) }", "(float[M] s) { [n] s = Abs (r) }")
    _, (before, after) = view(BRANCHES, two).graphs

    assert marks(before)["q"] == marks(after)["s"] == "changed"


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (("a/b/one.onnx", "c/two.onnx"), ("one.onnx", "two.onnx")),
        (("a/m.onnx", "b/m.onnx"), ("a/m.onnx", "b/m.onnx")),
        ((r"c:\a\one.onnx", "two.onnx"), ("one.onnx", "two.onnx")),
        (("<ModelProto>", "<ModelProto>"), ("<ModelProto>", "<ModelProto>")),
    ],
)
def test_models_have_their_file_names_where_these_differ(
    names: tuple[str, str], short: tuple[str, str]
) -> None:
    assert file_names(*names) == short
