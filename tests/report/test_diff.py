"""The diff of two models: by what nodes compute, not by their places and names."""

from __future__ import annotations

import random
import time

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnx_migrate.files import load
from onnx_migrate.report.diff import diff_entries, diff_lines

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[2] x) => (float[2] y) <float[2] k = {1.0, 2.0}> {
  a = Relu (x)
  b = Neg (a)
  y = Mul (b, k)
}"""


def parsed(text: str = MODEL) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def lines(after: onnx.ModelProto, before: onnx.ModelProto | None = None) -> list[str]:
    return list(diff_lines(diff_entries(before or parsed(), after), ("old.onnx", "new.onnx")))


def changed(*pairs: tuple[str, str], of: str = MODEL) -> str:
    """Return the text of a model in which texts are replaced."""
    for old, new in pairs:
        assert old in of
        of = of.replace(old, new)
    return of


ATTRIBUTES = changed(("b = Neg (a)", "[n] b = LpNormalization <axis = 0, p = 2> (a)"))
SWAPPED = changed(("Mul (b, k)", "Mul (b, a)"))
WITHOUT_B = changed(("  b = Neg (a)\n", ""), ("(b, k)", "(a, k)"))
CONSTANT = changed(
    (" <float[2] k = {1.0, 2.0}>", ""),
    ("  a = Relu", "  k = Constant <value = float[2] {1.0, 2.0}> ()\n  a = Relu"),
)
BRANCHES = """<ir_version: 8, opset_import: ["": 17]> g (bool c, float[2] x) => (float[2] y) {
  r = Relu (x)
  y = If (c) <then_branch = t () => (float[2] p) { p = Relu (r) }, else_branch = e () => (float[2] q) { q = Neg (r) }>
}"""
FUNCTION = """<ir_version: 8, opset_import: ["": 17, "f": 1]> g (float[2] x) => (float[2] y) { y = f.Block (x) }
<domain: "f", opset_import: ["": 17]> Block (v) => (w) { u = Relu (v)  w = Neg (u) }"""
ORDERED = changed(("(float[2] x)", "(float[2] x, float[2] z)"))
GRAPH = "@@ graph @@"
BRANCH = "@@ graph/y:then_branch @@"

CASES: dict[str, tuple[str, str, list[str]]] = {
    "equal": (MODEL, MODEL, []),
    "an operator": (MODEL, changed(("Neg (a)", "Abs (a)")), [GRAPH, "-b = Neg (a)", "+b = Abs (a)"]),
    "attributes and inputs one by one": (
        ATTRIBUTES,
        changed(("axis = 0, p = 2> (a)", "axis = -1> (x)"), of=ATTRIBUTES),
        [
            GRAPH,
            " b = LpNormalization 'n'",
            *("-  inputs (a)", "+  inputs (x)", "-  axis = 0", "+  axis = -1", "-  p = 2"),
        ],
    ),
    "renamed values are listed, and their nodes do not differ": (
        MODEL,
        changed(
            ("a = Relu", "p = Relu"), ("b = Neg (a)", "q = Neg (p)"), ("(b, k)", "(q, m)"), (" k =", " m =")
        ),
        [GRAPH, " 2 values renamed: a → p, b → q"],
    ),
    "swapped names": (
        SWAPPED,
        changed(
            ("a = Relu (x)", "b = Relu (x)"), ("b = Neg (a)", "a = Neg (b)"), ("(b, a)", "(a, b)"), of=SWAPPED
        ),
        [GRAPH, " 2 values renamed: a → b, b → a"],
    ),
    "a change before renamed nodes is the only one": (
        MODEL,
        changed(("Relu (x)", "Sin (x)"), ("b = Neg", "q = Neg"), ("(b, k)", "(q, k)")),
        [GRAPH, "-a = Relu (x)", "+a = Sin (x)", " 1 value renamed: b → q"],
    ),
    "a removed node": (
        MODEL,
        WITHOUT_B,
        [GRAPH, "-b = Neg (a)", " y = Mul", "-  inputs (b, k)", "+  inputs (a, k)"],
    ),
    "an added node": (
        WITHOUT_B,
        MODEL,
        [GRAPH, "+b = Neg (a)", " y = Mul", "-  inputs (a, k)", "+  inputs (b, k)"],
    ),
    "a constant that becomes an initializer": (MODEL, CONSTANT, []),
    "another value": (
        MODEL,
        changed(("{1.0, 2.0}> ()", "{1.0, 3.0}> ()"), of=CONSTANT),
        [GRAPH, "-weight k: float[2] [1.0, 2.0]", "+weight k: float[2] [1.0, 3.0]"],
    ),
    "in a sub-graph": (
        BRANCHES,
        changed(("p = Relu", "p = Abs"), of=BRANCHES),
        [BRANCH, "-p = Relu (r)", "+p = Abs (r)"],
    ),
    "renames reach sub-graphs": (
        BRANCHES,
        changed(
            ("r = Relu", "s = Relu"), ("(r)", "(s)"), ("p = R", "o = R"), ("[2] p", "[2] o"), of=BRANCHES
        ),
        [GRAPH, " 1 value renamed: r → s", BRANCH, " 1 value renamed: p → o"],
    ),
    "inputs of functions are compared by place": (FUNCTION, changed(("(v)", "(a)"), of=FUNCTION), []),
    "functions by their keys": (
        FUNCTION,
        changed(("Relu", "Abs"), ('["": 17]> Block', '["": 18]> Block'), of=FUNCTION),
        ["@@ function f:Block @@", "-opset ai.onnx 17", "+opset ai.onnx 18", "-u = Relu (v)", "+u = Abs (v)"],
    ),
    "an input named like a kind of lines": (
        MODEL,
        changed(("float[2] x", "float[2] weight"), ("(x)", "(weight)")),
        [
            GRAPH,
            "-input x: float[2]",
            "+input weight: float[2]",
            " a = Relu",
            "-  inputs (x)",
            "+  inputs (weight)",
        ],
    ),
    "the order of inputs": (
        ORDERED,
        changed(("float[2] x, float[2] z", "float[2] z, float[2] x"), of=ORDERED),
        [GRAPH, "-order of inputs: x, z", "+order of inputs: z, x"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_lines(case: str) -> None:
    before, after, expected = CASES[case]

    head = ["--- old.onnx", "+++ new.onnx"] if expected else []
    assert lines(parsed(after), parsed(before)) == [*head, *expected]


def test_moved_nodes_are_no_change() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y, float[2] z) {
      a = Relu (x) b = Neg (x) y = Abs (a) z = Exp (b) }"""
    after = parsed(text)
    nodes = list(after.graph.node)
    del after.graph.node[:]
    after.graph.node.extend([nodes[1], nodes[3], nodes[0], nodes[2]])

    assert lines(after, parsed(text)) == []


def test_a_function_that_is_gone() -> None:
    without = parsed(FUNCTION)
    del without.functions[:]

    assert lines(without, parsed(FUNCTION))[2:] == ["@@ model @@", "-function f:Block of 2 nodes"]


def test_weights_are_compared_by_value_not_by_field() -> None:
    before, after = parsed(), parsed()
    after.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.array([1, 2], np.float32), "k"))

    assert lines(after, before) == []


def test_a_large_weight_is_shown_by_a_digest_of_its_values() -> None:
    before, after = parsed(), parsed()
    for proto, last in ((before, 0.0), (after, 1.0)):
        proto.graph.initializer[0].CopyFrom(
            helper.make_tensor("k", TensorProto.FLOAT, [20], [0.0] * 19 + [last])
        )

    _, _, body, title, old, new = lines(after, before)

    assert body == "@@ graph @@"
    assert title == " weight k differs in 1 of 20 elements, at [19]: 0 and 1"
    assert old.startswith("-  weight k: float[20] #")
    assert new.startswith("+  weight k: float[20] #")
    assert old[1:] != new[1:]


def test_weights_that_are_no_part_of_the_structure_are_read_where_they_moved() -> None:
    before, same, other = (parsed() for _ in range(3))
    for proto, last in ((before, 1.0), (same, 1.0), (other, 2.0)):
        values = np.arange(5000, dtype=np.float32)
        values[-1] = last
        proto.graph.initializer.append(numpy_helper.from_array(values, "big"))
    a, b, c = map(load, (before, same, other))

    assert list(diff_entries(a.proto, b.proto, weights=(a.weights, b.weights))) == []
    (entry,) = diff_entries(a.proto, c.proto, weights=(a.weights, c.weights))
    assert entry.subject == "weight big"
    assert entry.removed != entry.added


@pytest.mark.parametrize("declared", [False, True])
def test_shapes_of_inner_values_are_shown_only_if_they_were_declared(declared: bool) -> None:
    before, after = parsed(), parsed()
    if declared:
        before.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [3]))
    after.graph.value_info.append(helper.make_tensor_value_info("a", TensorProto.FLOAT, [2]))

    found = lines(after, before)

    assert bool(found) == declared
    assert not declared or found[-1] == "+shape a: float[2]"


def test_header_and_interface_have_lines_of_their_own() -> None:
    after = parsed(MODEL.replace("float[2] x", "float[N] x"))
    after.opset_import[0].version, after.ir_version = 18, 9
    after.metadata_props.add(key="k", value="v")

    assert lines(after)[2:] == [
        "@@ model @@",
        "-IR version 8",
        "+IR version 9",
        "-opset ai.onnx 17",
        "+opset ai.onnx 18",
        "+metadata k = 'v'",
        "@@ graph @@",
        "-input x: float[2]",
        "+input x: float[N]",
    ]


def test_an_input_named_like_a_kind_of_lines_is_an_input() -> None:
    before, after = (
        changed(("float[2] x", f"{dtype}[2] weight"), ("(x)", "(weight)")) for dtype in ("float", "double")
    )
    entries = diff_entries(parsed(before), parsed(after))

    assert [(entry.kind, entry.name) for entry in entries] == [("input", "weight")]


def chain(count: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(count)]
    return helper.make_model(helper.make_graph(nodes, "g", [], []))


def test_many_renamed_nodes_take_linear_time() -> None:
    before, after = chain(20_000), chain(20_000)
    for index, node in enumerate(after.graph.node):
        node.input[0], node.output[0] = f"w{index}", f"w{index + 1}"
    after.graph.node[0].input[0] = "v0"
    start = time.process_time()

    entries = list(diff_entries(before, after))

    assert time.process_time() - start < 20
    assert [entry.subject for entry in entries] == ["renamed values"]
    assert "and 19980 more" in entries[0].title


def test_the_result_does_not_hang_on_the_order() -> None:
    """Shuffled independent nodes give no lines, and equal ones that differ in number give the difference."""
    nodes = [helper.make_node("Relu", ["x"], [f"v{i}"]) for i in range(50)]
    shuffled = list(nodes)
    random.Random(0).shuffle(shuffled)
    a, b = (helper.make_model(helper.make_graph(part, "g", [], [])) for part in (nodes, shuffled))

    assert lines(b, a) == []
    del b.graph.node[0]
    assert len([line for line in lines(b, a) if line.startswith("-v")]) == 1
