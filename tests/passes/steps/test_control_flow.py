"""If, Loop and Scan: the nodes of their sub-graphs, outer values, axes, directions and batches."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.rewrite.change_log import Exactness
from tests.harness import loads, make_variant, model
from tests.steps import check, check_down, lift, lower, operators, refuses


@pytest.mark.parametrize("count", [0, 1, 4])
def test_nothing_carried(count: int) -> None:
    source = """11 (float[2] x, int64 n) => (float[] y, int64[] z) <bool on = {1}> {
        y, z = Loop (n, on) <body = b (int64 i, bool c) => (bool d, float[2] s, int64 t) {
            d = Identity (c)  f = Cast <to = 1> (i)  s = Add (x, f)  t = Identity (i) }> }"""
    feeds = {"x": np.array([1, 2], np.float32), "n": np.array(count)}
    check_down(source, 10, 9, 7, feeds=feeds)


def test_a_condition_and_no_count() -> None:
    source = """11 (int64 last, bool on) => (int64[] z) {
        z = Loop ("", on) <body = b (int64 i, bool c) => (bool d, int64 t) { d = Less (i, last)  t = Identity (i) }> }"""
    feeds = {"last": np.array(3), "on": np.array(True)}
    check_down(source, 10, 9, feeds=feeds)


def test_a_carried_value() -> None:
    source = """11 (float[2] x, int64 n) => (float[] y) {
        y = Loop (n, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] s) {
            d = Identity (c)  s = Add (a, a) }> }"""
    feeds = {"x": np.array([1, 2], np.float32), "n": np.array(3)}
    check_down(source, 10, 7, feeds=feeds)


@pytest.mark.parametrize(
    "other", ["Slice <axes = [0], starts = [0], ends = [0]> (x)", "Unsqueeze <axes = [0]> (x)"]
)
def test_branches_of_different_shapes(other: str) -> None:
    from onnx.shape_inference import infer_shapes

    source = f"""11 (float[2] x, bool c) => (float[] y) {{ y = If (c) <
        then_branch = a () => (p) {{ p = Relu (x) }}, else_branch = b () => (q) {{ q = {other} }}> }}"""
    if "Slice" in other:
        source = source.replace(other, "Slice (x, s, s)").replace(
            "(float[] y) {", "(float[] y) <int64[1] s = {0}> {"
        )
    for value in (True, False):
        feeds = {"x": np.array([1, 2], np.float32), "c": np.array(value)}
        result = check_down(source, 10, 9, feeds=feeds)
    infer_shapes(result, strict_mode=True)
    assert loads(result)
    bare = model(source)
    for attribute in bare.graph.node[0].attribute:
        attribute.g.output[0].ClearField("type")
    assert loads(lower(bare, 10)[0])


@pytest.mark.parametrize(
    ("opset", "body"),
    [
        (14, "y = Identity (x)"),
        (
            13,
            "y = If (c) <then_branch = a () => (p) { p = Identity (x) }, else_branch = b () => (q) { q = Identity (x) }>",
        ),
    ],
)
def test_sequences_are_refused(opset: int, body: str) -> None:
    source = f"{opset} (seq(float[2]) x, bool c) => (seq(float[2]) y) {{ {body} }}"
    error = refuses("no-equal", lower, source, opset - 1)
    assert "sequence" in str(error)


@pytest.mark.parametrize("condition", [True, False])
def test_if(condition: bool) -> None:
    """The branches have nodes that change, on values of the outer graph."""
    source = """7 (bool c, float[2, 3] x) => (float[2, 1] y) { y = If (c) <
                then_branch = t () => (float[2, 1] a) { a = ReduceSum <axes = [1]> (x) },
                else_branch = e () => (float[2, 1] b)
                    { n = Softmax <axis = 0> (x)  b = ReduceMax <axes = [1]> (n) }
            >
        }"""
    check(source, to=13, feeds={"c": np.array(condition), "x": np.arange(6, dtype=np.float32).reshape(2, 3)})


@pytest.mark.parametrize(("trips", "condition"), [("m", "go"), ("m", '""'), ('""', "go")])
def test_loop(trips: str, condition: str) -> None:
    source = f"""8 (int64 m, bool go, float[2, 3] x, float[1, 3] start)
            => (float[1, 3] last, float[t, 1, 3] all) {{
            last, all = Loop ({trips}, {condition}, start) <
                body = b (int64 i, bool going, float[1, 3] state)
                    => (bool more, float[1, 3] next, float[1, 3] out) {{
                    sum = ReduceSum <axes = [0]> (x)
                    next = Add (state, sum)
                    out = Softmax <axis = 0> (next)
                    hundred = Constant <value = float {{100}}> ()
                    top = ReduceMax <keepdims = 0> (next)
                    more = Less (top, hundred)
                }}
            >
        }}"""
    feeds = {
        "m": np.array(4, np.int64),
        "go": np.array(True),
        "x": np.arange(6, dtype=np.float32).reshape(2, 3),
        "start": np.ones((1, 3), np.float32),
    }
    check(source, to=18, feeds=feeds)


SUM = """body = b (float[2] s, float[2] x) => (float[2] t, float[2] z) { t = Add (s, x)  z = Mul (t, x) }"""


def text(attributes: str = "", x: str = "[4, 2]", z: str = "[4, 2]", opset: int = 11) -> str:
    return f"""{opset} (float[2] start, float{x} x) => (float[2] last, float{z} all)
        {{ last, all = Scan <num_scan_inputs = 1, {SUM}{attributes}> (start, x) }}"""


@pytest.mark.parametrize(
    ("attributes", "x", "z"),
    [
        ("", "[4, 2]", "[4, 2]"),
        (", scan_input_directions = [1]", "[4, 2]", "[4, 2]"),
        (", scan_output_directions = [1]", "[4, 2]", "[4, 2]"),
        (", scan_output_directions = [1], scan_input_directions = [1]", "[4, 2]", "[4, 2]"),
        (", scan_input_axes = [1]", "[2, 4]", "[4, 2]"),
        (", scan_output_axes = [1]", "[4, 2]", "[2, 4]"),
        (
            ", scan_input_axes = [-1], scan_output_axes = [-1], scan_output_directions = [1]",
            "[2, 4]",
            "[2, 4]",
        ),
    ],
)
def test_axes_and_directions(attributes: str, x: str, z: str) -> None:
    check_down(text(attributes, x, z), 10, 9)
    needs = {"unranked": "needs-rank"} if "_input_axes" in attributes else None
    check_down(text(attributes, x, z), 8, 7, refused=needs)


def test_an_output_axis_is_counted_from_the_front_by_the_rank_that_the_body_gives() -> None:
    source, _ = make_variant(model(text(", scan_output_axes = [-1]", "[4, 2]", "[2, 4]")), "unranked", {})
    result, log = lower(source, 10)
    assert [list(item.ints) for item in result.graph.node[0].attribute if "axes" in item.name] == [[1]]
    assert [change.exactness for change in log.changes] == [Exactness.EXACT]


def test_two_scans_and_two_states() -> None:
    source = """9 (float[2] a, float b, float[2, 5, 3] x, float[5] w)
            => (float[2] a_last, float b_last, float[2, 3, 5] first, float[5] second) {
            a_last, b_last, first, second = Scan <num_scan_inputs = 2, scan_input_axes = [1, 0],
                scan_output_axes = [2, 0], scan_input_directions = [0, 1], scan_output_directions = [1, 0],
                body = c (float[2] p, float q, float[2, 3] e, float f)
                    => (float[2] pp, float qq, float[2, 3] g, float h)
                { pp = Mul (p, f)  qq = Add (q, f)  g = Mul (e, qq)  h = Identity (qq) }> (a, b, x, w)
        }"""
    check_down(source, 8, 7, refused={"unranked": "needs-rank"})


def test_no_states_and_an_outer_value() -> None:
    source = """9 (float[4, 2] x, float[2] w) => (float[4, 2] all) {
            all = Scan <num_scan_inputs = 1, body = b (float[2] a) => (float[2] z) { z = Mul (a, w) }> (x)
        }"""
    check_down(source, 8, 7)


def test_a_scan_in_a_scan() -> None:
    source = """9 (float[2] start, float[4, 3, 2] x) => (float[2] last, float[4, 3, 2] all) {
            last, all = Scan <num_scan_inputs = 1, body = b (float[2] s, float[3, 2] y) => (float[2] t, float[3, 2] z) {
                t, z = Scan <num_scan_inputs = 1, body = c (float[2] p, float[2] e) => (float[2] q, float[2] r)
                    { q = Add (p, e)  r = Mul (q, e) }> (s, y)
            }> (start, x)
        }"""
    check_down(source, 8, 7)


def test_the_batch_of_version_8_is_refused() -> None:
    source = f"""8 (float[3, 2] start, float[3, 4, 2] x) => (float[3, 2] last, float[3, 4, 2] all)
        {{ last, all = Scan <num_scan_inputs = 1, {SUM}> ("", start, x) }}"""
    check_down(source, 7, refused="no-equal", variants=("plain",))


def test_one_step() -> None:
    feeds = {"start": np.ones(2, np.float32), "x": np.ones((1, 2), np.float32)}
    check_down(text("", "[1, 2]", "[1, 2]"), 8, 7, feeds=feeds)


SCAN_UP_SUM = """body = b (float[2] s, float[2] x) => (float[2] t, float[2] z) {
    t = Add (s, x)
    n = ReduceSum <axes = [0], keepdims = 1> (t)
    z = Mul (t, n)
}"""


def text_scan_up(lengths: str = '""', declared: str = "", initial: str = "") -> str:
    return f"""8 (float[3, 2] start, float[3, 4, 2] x{declared})
            => (float[3, 2] last, float[3, 4, 2] all) {initial}
        {{ last, all = Scan <num_scan_inputs = 1, {SCAN_UP_SUM}> ({lengths}, start, x) }}"""


def test_batch() -> None:
    result = check(text_scan_up(), to=9)
    assert operators(result) == ["Scan"]
    body = onnx.helper.get_node_attr_value(result.graph.node[0], "body")
    assert [value.type.tensor_type.elem_type for value in (*body.input, *body.output)] == [
        onnx.TensorProto.FLOAT
    ] * 4


def test_directions_and_no_output_of_a_state() -> None:
    body = """body = b (float[2] s, float[2] x, float w) => (float[2] t, float[2] z, float q) {
        t = Add (s, x)
        z = Mul (t, w)
        q = Identity (w)
    }"""
    source = f"""8 (float[3, 2] start, float[3, 4, 2] x, float[3, 4] w)
            => (float[3, 2] last, float[3, 4, 2] all, float[3, 4] same)
        {{ last, all, same = Scan <num_scan_inputs = 2, directions = [1, 0], {body}> ("", start, x, w) }}"""
    check(source, to=9)


def test_no_states_and_an_outer_value_scan_up() -> None:
    source = """8 (float[3, 4, 2] x, float[2] w) => (float[3, 4, 2] all) {
            all = Scan <num_scan_inputs = 1, body = b (float[2] a) => (float[2] z) { z = Mul (a, w) }> ("", x)
        }"""
    check(source, to=9)


def test_a_scan_in_a_scan_scan_up() -> None:
    inner = """body = c (float[1] p, float[1] e)
        => (float[1] q, float[1] r) { q = Add (p, e)  r = Identity (q) }"""
    source = f"""8 (float[2, 3, 1] start, float[2, 4, 3, 5, 1] x)
            => (float[2, 3, 1] last, float[2, 4, 3, 5, 1] all) {{
            last, all = Scan <num_scan_inputs = 1, body = b (float[3, 1] s, float[3, 5, 1] y)
                => (float[3, 1] t, float[3, 5, 1] z)
                {{ t, z = Scan <num_scan_inputs = 1, {inner}> ("", s, y) }}> ("", start, x)
        }}"""
    check(source, to=9)


def test_sequence_lens_of_the_whole_length_are_dropped() -> None:
    source = text_scan_up("lengths", initial="<int64[3] lengths = {4, 4, 4}>")
    check(source, to=9, refused={"symbolic": "sequence-lens", "unranked": "sequence-lens"})


@pytest.mark.parametrize(
    "source",
    [
        text_scan_up("lengths", initial="<int64[3] lengths = {4, 2, 4}>"),
        text_scan_up("lengths", ", int64[3] lengths"),
    ],
)
def test_other_sequence_lens_are_refused(source: str) -> None:
    feeds = {"start": np.ones((3, 2), np.float32), "x": np.ones((3, 4, 2), np.float32)}
    if ", int64" in source:
        feeds["lengths"] = np.array([4, 2, 4])
    variants = ("plain", "symbolic", "unranked", "if", "function")
    check(source, to=9, feeds=feeds, refused=dict.fromkeys(variants, "sequence-lens"))


@pytest.mark.parametrize("axes", [[0], [1], [-1]])
def test_from_9(axes: list[int]) -> None:
    opset = 11 if axes[0] < 0 else 9
    source = f"""{opset} (float[3] start, float[3, 3] x) => (float[3] last, float[3, 3] all)
        {{ last, all = Scan <num_scan_inputs = 1, scan_input_axes = {axes}, scan_output_axes = {axes},
           body = b (float[3] s, float[3] e)
               => (float[3] t, float[3] z) {{ t = Add (s, e)  z = Identity (t) }}> (start, x) }}"""
    check(source, to=16)


def test_names_are_deterministic() -> None:
    first, second = (lift(text_scan_up(), 26)[0] for _ in range(2))
    assert first.SerializeToString() == second.SerializeToString()
