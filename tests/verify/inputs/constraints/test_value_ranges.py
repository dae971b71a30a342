"""Inputs are followed to the nodes that restrict their values, take them exactly, or look for an integer in them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.inputs.constraints.facts import Argument, Facts
from onnx_migrate.verify.inputs.constraints.ranges import Range, range_before
from onnx_migrate.verify.inputs.constraints.value_ranges import (
    exact_inputs,
    input_ranges,
    padded,
    padding_ids,
)
from tests.verify.harness import check, net, outputs, random_inputs

EMBEDDING = (
    "(int64[N,T] ids) => (float[N,T,2] y) <float[3,2] w = {{1,2,3,4,5,6}}> {{ {0} y = Gather (w, i) }}"
)


@pytest.mark.parametrize(
    "nodes",
    [
        "i = Identity(ids)",
        "c = Cast<to=6>(ids) i = Cast<to=7>(c)",
        "s = Shape(ids) e = Expand(ids, s) t = Transpose<perm=[0,1]>(e) i = Reshape(t, s)",
        "k = Constant<value_ints=[1,1]>() t = Tile(ids, k) i = Concat<axis=0>(t, t)",
        "k = Constant<value_ints=[0]>() u = Unsqueeze(ids, k) i = Squeeze(u, k)",
    ],
)
def test_indices_stay_inside_their_table(nodes):
    model = net(EMBEDDING.format(nodes))
    assert (input_ranges(model)["ids"].low, input_ranges(model)["ids"].high) == (0, 2)
    for seed in range(20):
        feed = random_inputs(model, seed=seed).feed("wide")
        assert set(np.unique(feed["ids"])) <= {0, 1, 2}
    assert outputs(model, feed)["y"].shape[-1] == 2


def test_what_an_operator_computes_of_an_input_is_not_followed():
    assert "ids" not in input_ranges(
        net(EMBEDDING.format("f = Cast<to=1>(ids) e = Exp(f) i = Cast<to=7>(e)"))
    )


def test_the_length_of_a_computed_table_is_inferred():
    text = "(float[5,2] x, int64[3] ids) => (float[3,2] y) { t = Relu(x) y = Gather(t, ids) }"
    assert input_ranges(net(text))["ids"].high == 4


def test_an_index_into_two_tables_is_inside_the_smaller():
    text = "(int64[3] i) => (float[3] y, float[3] z) { y = Gather(a, i) z = Gather(b, i) }"
    assert input_ranges(net(text, a=np.arange(7.0), b=np.arange(4.0)))["i"].high == 3


def test_an_input_is_followed_into_functions_and_branches():
    text = """<ir_version: 8, opset_import: ["" : 17, "d" : 1]>
    g (int64[4] ids, bool c, float[4] x) => (float[4,2] y, float[4] z) <float[3,2] w = {1,2,3,4,5,6}> {
      y = If (c) <then_branch = t () => (float[4,2] a) { a = Gather (w, ids) },
                  else_branch = e () => (float[4,2] b) { b = Gather (w, ids) }>
      z = d.root (x) }
    <domain: "d", opset_import: ["" : 17]> root (u) => (v) { i = Identity (u) v = Sqrt (i) }"""
    ranges = input_ranges(onnx.parser.parse_model(text))
    assert ranges["ids"].high == 2
    assert ranges["x"].low > 0


def test_a_loop_whose_body_has_fewer_inputs_is_not_followed_into_it():
    model = net("""(int64[2] i) => (int64[2] y) <int64 n = {2}, bool t = {1}> { y = Loop(n, t, i) <body = b
        (int64 k, bool c, int64[2] v) => (bool d, int64[2] w) { d = Identity(c) w = Neg(v) }> }""")
    del model.graph.node[0].attribute[0].g.input[2]
    assert "i" not in input_ranges(model, {"i": (2,)})


def test_two_ranges_combine_to_what_satisfies_both():
    assert Range(0, 5).intersection(Range(3, 9)) == Range(3, 5)
    assert Range(0, 1).intersection(Range(3, 9)) == Range(0, 1), "none satisfies both"
    assert Range(0, 1, weak=True).intersection(Range(3, 9)) == Range(3, 9), "a guess is replaced"
    pattern = Range(1, 2, (1.0, 2.0))
    assert Range(0, 9).intersection(pattern) == pattern


def test_a_divisor_that_is_an_index_is_an_index_that_is_not_zero():
    assert Range(0, 5).intersection(Range(1, 8, discrete=True)) == Range(1, 5)


def test_an_exact_vector_may_be_empty():
    assert Range.exactly() == Range(0, 0)
    assert Range.exactly(2, 3, 1) == Range(1, 3, (2, 3, 1))


TABLE = """(int64[N,3] i) => (float[a,b] y)
  <float[10] w = {{0,1,2,3,4,5,6,7,8,9}}, int64 k = {{2}}, int64 o = {{1}}> {{ {0} y = Gather(w, j) }}"""


@pytest.mark.parametrize(
    ("nodes", "low", "high"),
    [
        ("j = Add(i, k)", -2, 7),
        ("j = Sub(k, i)", -7, 2),
        ("j = Sub(i, k)", 2, 11),
        ("j = Mul(i, k)", 0, 4),
        ("j = Mul(i, o)", 0, 9),
        ("j = Div(i, k)", 0, 19),
        ("j = Neg(i)", -9, 0),
        ("c = Add(i, k) j = Mul(c, k)", -2, 2),
        ("j = CumSum(i, o)", 0, 3),
    ],
)
def test_the_index_is_inside(nodes, low, high):
    model = net(TABLE.format(nodes))
    found = input_ranges(model, {"i": (2, 3)})["i"]
    assert (found.low, found.high) == (low, high)
    for seed in range(5):
        outputs(model, random_inputs(model, seed=seed).feed("wide"))


@pytest.mark.parametrize(
    ("operator", "ends"), [("Add", [(0, 4), (0, 4)]), ("Sub", [(5, 9), (0, 4)]), ("Div", [(0, 9), (1, 1)])]
)
def test_two_inputs_that_are_combined_share_the_table(operator, ends):
    text = f"(int64[3] a, int64[3] b) => (float[3] y) {{ j = {operator}(a, b) y = Gather(w, j) }}"
    found = input_ranges(net(text, w=[1.0] * 10))
    assert [(found[name].low, found[name].high) for name in "ab"] == ends


def test_a_number_of_steps_is_followed_through_floats():
    text = """(float start, float end, float step) => (float[n] y) {
      d = Sub(end, start) q = Div(d, step) c = Ceil(q) n = Cast<to=7>(c)
      y = Loop(n, "") <body = b (int64 i, bool c0) => (bool c1, float e) { c1 = Identity(c0) e = Cast<to=1>(i) }> }"""
    model = net(text)
    feed = random_inputs(model).feed("normal")
    assert 1 <= len(outputs(model, feed)["y"]) <= 5


@pytest.mark.parametrize("nodes", ["y = Sub(one, m)", "b = Equal(m, one) y = Cast<to=1>(b)"])
def test_a_mask_is_guessed(nodes):
    model = net(f"(float[4] m) => (float[4] y) <float one = {{1}}> {{ {nodes} }}")
    assert input_ranges(model)["m"] == Range(0, 1, weak=True)


def test_guesses_and_exact_vectors_are_not_computed_with():
    model = net("(int64[3] a, int64[3] b) => (int64[3] y) { y = Add(a, b) }")
    argument = Argument(model.graph.node[0], 0, Facts(model))
    assert range_before(argument, Range(0, 1, weak=True)) is None
    assert range_before(argument, Range.exactly(1, 2)) is None
    assert range_before(argument, Range(0, 8)) == Range(0, 4)


SHAPED = "(float[N,4] x) => (float[N,4] y) { s = Shape(x) y = Reshape(x, s) }"


def test_shapes_and_what_follows_from_them_hold_at_the_given_sizes():
    facts = Facts(net(SHAPED), {"x": (7, 4)})
    assert facts.static_shape("y") == (7, 4)
    assert facts.value("s").tolist() == [7, 4]
    assert facts.length("y", -2) == 7


def test_without_sizes_open_dims_are_unknown():
    facts = Facts(net(SHAPED))
    assert facts.shape("y") == (None, 4)
    assert facts.static_shape("y") is None
    assert facts.value("s") is None
    assert facts.shape("nothing") is None


def test_constants_and_types_are_known():
    facts = Facts(
        net(
            "(float[2] x) => (float[2] y) { k = Constant<value_ints = [3, 5]>() y = Add(x, w) }", w=[1.0, 2.0]
        )
    )
    assert facts.value("k").tolist() == [3, 5]
    assert facts.value("w").tolist() == [1, 2]
    assert facts.element_type("y") == 1
    assert facts.element_type("k") == 7


EXACT = [
    ("(float[1,1,4,4] x, float[4] s) => (float[a,b,c,d] y) { y = Resize<mode = \"nearest\">(x, , s) }", {"s"}),
    ("(float[3] x) => (string[3] y) { i = Identity(x) y = Cast<to = 8>(i) }", {"x"}),
    ("(float[3] x, string s) => (string[3] y) { y = CastLike(x, s) }", {"x"}),
    ("(float a, float b, float c) => (float[n] y) { y = Range(a, b, c) }", {"a", "b", "c"}),
    ("(float[3] x) => (float[3] y) { y = Relu(x) }", set()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "names"), EXACT)
def test_inputs_that_must_be_exact_are_found_and_the_model_is_verified(text, names):
    assert exact_inputs(net(text)) == names
    check(text, text, Kind.VERIFIED)


TEXT = "(int64[N,T] ids) => (bool[N,T] y) {{ {nodes} }}"


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        ("p = Constant<value_int = 1>() y = Equal(ids, p)", {"ids": 1}),
        ("p = Constant<value = int32[1] {3}>() c = Cast<to = 6>(ids) y = Equal(p, c)", {"ids": 3}),
        ("p = Constant<value_int = 1>() s = Add(ids, p) y = Equal(s, p)", {}),
        ("y = Equal(ids, ids)", {}),
        ("p = Constant<value_ints = [1, 2]>() y = Equal(ids, p)", {}),
        ("y = Cast<to = 9>(ids)", {}),
    ],
    ids=["compared", "cast before", "computed before", "with itself", "with several", "not compared"],
)
def test_the_id_that_pads_is_what_elements_are_compared_with(nodes: str, found: dict[str, int]) -> None:
    assert padding_ids(net(TEXT.format(nodes=nodes))) == found


def test_inputs_of_floats_and_of_one_axis_have_no_padding_id() -> None:
    nodes = "p = Constant<value_int = 1>() y = Equal(ids, p)"
    assert padding_ids(net(TEXT.format(nodes=nodes).replace("[N,T]", "[T]"))) == {}
    floats = TEXT.format(nodes=nodes.replace("value_int = 1", "value_float = 1.")).replace("int64", "float")
    assert padding_ids(net(floats)) == {}


@pytest.mark.parametrize("dims", ["", "[1]"])
def test_a_branch_is_taken_for_its_number_and_not_for_others(dims: str) -> None:
    branches = "<then_branch = t () => (float[2] a) { a = Neg(x) }, else_branch = e () => (float[2] b) { b = Exp(x) }>"
    inputs = f"(float[2] x, int64{dims} rate) => (float[2] y) <int64 k = {{16000}}>"
    model = net(f"{inputs} {{ c = Equal(rate, k) y = If(c) {branches} }}")
    source = random_inputs(model)
    assert source.feed("normal")["rate"] == 16000
    assert source.feed("wide")["rate"] != 16000


@pytest.mark.parametrize("length", [1, 2, 8, 9])
def test_rows_end_with_the_id_and_keep_a_start(length: int) -> None:
    values = np.full((2, 2, length), 7)
    counts = (padded(values, 1) == 1).sum(-1).ravel()

    assert (values == 7).all()
    assert (padded(values, 1)[..., -1] == 1).all()
    assert counts.max() <= max(1, (length + 1) // 2)
    if length >= 8:
        assert len(set(counts.tolist())) == 4
        assert (padded(values, 1)[..., 0] == 7).all()
