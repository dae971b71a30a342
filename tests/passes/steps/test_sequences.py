"""Sequences, optionals and SplitToSequence, up and down."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.harness import model
from tests.steps import check, check_down, lift, lower, refuses


def text(nodes: str, result: str, constants: str = "", opset: int = 11) -> str:
    return f"{opset} (float[2, 3] a, float[2, 3] b, float[4, 3] c) => ({result}) <{constants}> {{ {nodes} }}"


@pytest.mark.parametrize("position", [-3, -1, 0, 2])
def test_construct_and_at(position: int) -> None:
    nodes = "s = SequenceConstruct (a, b, c)  y = SequenceAt (s, p)"
    check_down(text(nodes, "float[] y", f"int64 p = {{{position}}}"), 10, 9, 7)


@pytest.mark.parametrize("position", [None, -3, -1, 0, 1, 3])
def test_insert_and_erase(position: int | None) -> None:
    place = "" if position is None else ", p"
    constants = f"int64 p = {{{position or 0}}}, int64 zero = {{0}}, int64 one = {{1}}"
    nodes = f"""s = SequenceConstruct (a, b, a)  t = SequenceInsert (s, c{place})  n = SequenceLength (t)
        x = SequenceAt (t, zero)  y = SequenceAt (t, one)"""
    check_down(text(nodes, "float[] x, float[] y, int64 n", constants), 10, 7)
    if position == 3:
        return
    nodes = f"""s = SequenceConstruct (a, b, c)  t = SequenceErase (s{place})  n = SequenceLength (t)
        x = SequenceAt (t, zero)  y = SequenceAt (t, one)"""
    check_down(text(nodes, "float[] x, float[] y, int64 n", constants), 10, 7)


def test_empty_and_concat() -> None:
    nodes = """e = SequenceEmpty ()  n = SequenceLength (e)  s = SequenceInsert (e, a)  t = SequenceInsert (s, c)
        y = ConcatFromSequence <axis = 0> (t)"""
    check_down(text(nodes, "float[] y, int64 n"), 10, 7)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
@pytest.mark.parametrize("new", [0, 1])
def test_concat(axis: int, new: int) -> None:
    nodes = f"s = SequenceConstruct (a, b)  y = ConcatFromSequence <axis = {axis}, new_axis = {new}> (s)"
    refused = {"unranked": "needs-rank"} if axis < 0 else None
    result = check_down(text(nodes, "float[] y"), 10, 7, refused=refused)
    written = onnx.helper.get_node_attr_value(result.graph.node[-1], "axis")
    assert written == axis % (2 + new), (
        "negative axes begin with opset 11; ONNX Runtime takes them all the same"
    )


@pytest.mark.parametrize(
    ("attributes", "lengths"),
    [("", ""), ("axis = 1", ""), ("keepdims = 0", ""), ("axis = -1, keepdims = 0", ""), ("", "int64 l = {3}"),
     ("", "int64 l = {2}"), ("axis = -1", "int64 l = {9}"), ("axis = 0", "int64[2] l = {1, 3}"),
     ("axis = 1", "int64[3] l = {1, 0, 2}")],
)  # fmt: skip
def test_split(attributes: str, lengths: str) -> None:
    given = "c, l" if lengths else "c"
    nodes = f"""s = SplitToSequence <{attributes}> ({given})  x = SequenceAt (s, first)  y = SequenceAt (s, last)
        n = SequenceLength (s)"""
    nodes = nodes.replace("<>", "")
    constants = "int64 first = {0}, int64 last = {-1}" + (f", {lengths}" if lengths else "")
    refused = {}
    if "[" not in lengths:
        refused = {"symbolic": "needs-shape", "unranked": "needs-rank"}
    elif "-" in attributes:
        refused = {"unranked": "needs-rank"}
    check_down(text(nodes, "float[] x, float[] y, int64 n", constants), 10, 7, refused=refused)


def test_the_last_part_is_what_remains() -> None:
    """ONNX Runtime runs a Split of more elements than there are."""
    nodes = "s = SplitToSequence (c, l)  y = SequenceAt (s, last)"
    source = text(nodes, "float[] y", "int64 last = {-1}, int64 l = {3}")
    (split,) = (node for node in lower(source, 10)[0].graph.node if node.op_type == "Split")
    assert onnx.helper.get_node_attr_value(split, "split") == [3, 1]


def test_a_sequence_read_in_a_branch() -> None:
    nodes = """s = SequenceConstruct (a, b)  y = If (on) <then_branch = g () => (float[2, 3] p) { p = SequenceAt (s, one) },
        else_branch = h () => (float[2, 3] q) { q = SequenceAt (s, zero) }>"""
    constants = "bool on = {1}, int64 zero = {0}, int64 one = {1}"
    check_down(text(nodes, "float[2, 3] y", constants), 10, 7)


def test_copies() -> None:
    nodes = "s = SequenceConstruct (a, b)  t = Identity (s)  y = SequenceAt (t, p)"
    check_down(text(nodes, "float[] y", "int64 p = {1}", 14), 13, 11, 10)
    source = "14 (seq(float[2]) s) => (seq(float[2]) t) { t = Identity (s) }"
    feeds = {"s": [np.ones(2, np.float32)]}
    check_down(
        source, 13, feeds=feeds, expected=[feeds["s"]], refused="no-equal", variants=("plain",)  # type: ignore[arg-type]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "result", "code"),
    [
        ("t = SequenceConstruct (a, b)", "seq(float[2, 3]) t", "no-equal"),
        (
            "s = SequenceConstruct (a, b)  n = Size (a)  p = Sub (n, five)  y = SequenceAt (s, i)",
            "float[] y",
            "needs-constant",
        ),
    ],
)
def test_refusals(nodes: str, result: str, code: str) -> None:
    if "five" in nodes:
        nodes = nodes.replace(
            "n = Size (a)  p = Sub (n, five)", "n = NonZero (a)  f = Size (n)  i = Sub (f, f)"
        )
    check_down(text(nodes, result), 10, refused=code, variants=("plain",))


def test_a_sequence_of_the_caller_is_refused() -> None:
    source = "11 (seq(float[2]) s, int64 p) => (float[2] y) { y = SequenceAt (s, p) }"
    feeds = {"s": [np.ones(2, np.float32)], "p": np.array(0)}
    check_down(source, 10, feeds=feeds, refused="no-equal", variants=("plain",))  # type: ignore[arg-type]


MAP = """17 (float[2, 3] x, float[2, 3] y, float[3] w) => (float[2, 3] z, int64 n) {
    s = SequenceConstruct (x, y)
    one = Constant <value_int = 1> ()
    t, u = SequenceMap <body = g (float[2, 3] x, float[3] v) => (float[2, 3] p, float[2, 3] q) {
        p = Add (x, v)  q = Mul (p, w)
    }> (s, w)
    n = SequenceLength (t)
    z = SequenceAt (u, one)
}"""


def test_map() -> None:
    """The body has an input of the name of a value around it, and reads another value from there."""
    check_down(MAP, 16, 13, variants=("plain", "symbolic", "unranked", "if"))
    for target in (12, 10):
        check_down(MAP, target, refused="no-equal", variants=("plain",))


def test_map_of_two_sequences_and_types() -> None:
    source = """17 (seq(float[n]) s, seq(int64[n]) k) => (seq(int64[m]) r) {
        r = SequenceMap <body = g (float[n] a, int64[n] b) => (int64[m] c) { h = Shape (a)  c = Concat <axis = 0> (h, b) }> (s, k)
    }"""
    feeds = {"s": [np.ones(2, np.float32), np.ones(3, np.float32)], "k": [np.array([7, 8]), np.array([9])]}
    check_down(source, 16, 15, 13, feeds=feeds, variants=("plain",))  # type: ignore[arg-type]


def test_a_result_of_unknown_type_is_refused() -> None:
    source = model("""17 (seq(float[2]) s) => (seq(float[2]) r) {
        r = SequenceMap <body = g (float[2] a) => (float[2] c) { c = own.Op (a) }> (s)
    }""")
    source.graph.node[0].attribute[0].g.output[0].ClearField("type")
    refuses("needs-type", lower, source, 16, match="element type of 'c' in its body")


X = {"x": np.array([1, 2], np.float32)}


def optional_of(tensor: bool) -> onnx.TypeProto:
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
    return helper.make_optional_type_proto(element if tensor else helper.make_sequence_type_proto(element))


def source(nodes: list[onnx.NodeProto], outputs: list[str], opset: int = 18) -> onnx.ModelProto:
    kinds = {"y": (TensorProto.FLOAT, None), "has": (TensorProto.BOOL, [])}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info(name, *kinds[name]) for name in outputs],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def node(operator: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, inputs, [output], **attributes)


def test_tensors_are_no_optionals() -> None:
    nodes = [node("OptionalHasElement", ["x"], "has"), node("OptionalGetElement", ["x"], "y")]
    check_down(source(nodes, ["has", "y"]), 17, 14, 10, 9, feeds=X, expected=[np.array(True), X["x"]])


def test_no_input() -> None:
    nodes = [helper.make_node("OptionalHasElement", [], ["has"]), node("Relu", ["x"], "y")]
    check_down(source(nodes, ["has", "y"]), 17, 14, 9, feeds=X, expected=[np.array(False), X["x"]])


def test_sequences_are_no_optionals() -> None:
    nodes = [
        node("SequenceConstruct", ["x", "x"], "s"),
        node("OptionalHasElement", ["s"], "has"),
        node("OptionalGetElement", ["s"], "t"),
        node("ConcatFromSequence", ["t"], "y", axis=0),
    ]
    expected = [np.array(True), np.concatenate([X["x"], X["x"]])]
    check_down(source(nodes, ["has", "y"]), 17, 14, 13, 11, 10, feeds=X, expected=expected)


@pytest.mark.parametrize("opset", [18, 17, 16])
def test_built_and_read(opset: int) -> None:
    nodes = [
        node("Optional", ["x"], "o"),
        node("Identity", ["o"], "p"),
        node("OptionalHasElement", ["p"], "has"),
        node("OptionalGetElement", ["p"], "y"),
    ]
    expected = [np.array(True), X["x"]]
    check_down(source(nodes, ["has", "y"], opset), *range(opset - 1, 13, -1), 9, feeds=X, expected=expected)


def test_empty() -> None:
    nodes = [
        helper.make_node("Optional", [], ["o"], type=helper.make_tensor_type_proto(TensorProto.FLOAT, [2])),
        node("OptionalHasElement", ["o"], "has"),
        node("Relu", ["x"], "y"),
    ]
    check_down(source(nodes, ["has", "y"]), 17, 14, 9, feeds=X, expected=[np.array(False), X["x"]])


def test_a_sequence_inside() -> None:
    nodes = [
        node("SequenceConstruct", ["x", "x"], "s"),
        node("Optional", ["s"], "o"),
        node("OptionalGetElement", ["o"], "t"),
        node("ConcatFromSequence", ["t"], "y", axis=0),
    ]
    expected = [np.concatenate([X["x"], X["x"]])]
    check_down(source(nodes, ["y"]), 17, 15, 14, 13, 11, 10, feeds=X, expected=expected)


@pytest.mark.parametrize("tensor", [True, False])
def test_an_optional_of_the_caller_is_refused(tensor: bool) -> None:
    model = source([node("OptionalHasElement", ["o"], "has")], ["has"])
    model.graph.input.append(onnx.ValueInfoProto(name="o", type=optional_of(tensor)))
    expected = [np.array(True)]
    given = {**X, "o": X["x"]}
    check_down(model, 14, feeds=given, expected=expected, refused="no-equal", variants=("plain",))


def test_an_optional_that_is_an_output_is_refused() -> None:
    model = source([node("Optional", ["x"], "o")], [])
    model.graph.output.append(onnx.ValueInfoProto(name="o", type=optional_of(True)))
    check_down(model, 14, feeds=X, expected=[X["x"]], refused="no-equal", variants=("plain",))


OPTIONAL = """15 (float[2, 3] x) => (float[2, 3] y, bool has) { o = Optional (x) y = OptionalGetElement (o)
        has = OptionalHasElement (o)
    }"""


def test_optional() -> None:
    check(OPTIONAL, to=18)


def test_the_schema_of_version_28_which_no_runtime_runs() -> None:
    """Only the schema is checked: onnx.reference returns the element with another rank."""
    source = model(OPTIONAL)
    result, _ = lift(source, 28)
    assert result.graph.node == source.graph.node


@pytest.mark.parametrize("attributes", ["", "<axis = 1>", "<axis = -1, keepdims = 0>"])
@pytest.mark.parametrize("sizes", ["", ", sizes"])
def test_split_to_sequence(attributes: str, sizes: str) -> None:
    axis_length = "3" if not attributes else "4"
    given = "{1, 2}" if axis_length == "3" else "{1, 3}"
    source = f"""11 (float[3, 4] x) => (seq(float) y) <int64[2] sizes = {given}>
        {{ y = SplitToSequence {attributes} (x{sizes}) }}"""
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(3, 4)}
    check(source, to=24, feeds=feeds)


def test_sequence_map() -> None:
    """SequenceMap has one version; the nodes of its body are lifted."""
    source = """17 (float[4, 3] x) => (float[4, 1] y) { s = SplitToSequence (x)
            m = SequenceMap (s) <body = b (float[1, 3] e)
                => (float[1, 1] r) { r = ReduceMax <axes = [1]> (e) }>
            y = ConcatFromSequence <axis = 0> (m)
        }"""
    check(source, to=18)
