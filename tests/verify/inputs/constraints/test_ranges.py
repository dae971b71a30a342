"""How what two nodes accept combines."""

from __future__ import annotations

import pytest

from onnx_migrate.verify.inputs.constraints.facts import Facts
from onnx_migrate.verify.inputs.constraints.ranges import Range, range_before
from onnx_migrate.verify.inputs.constraints.value_ranges import input_ranges
from onnx_migrate.verify.inputs.generate import generate_feed
from onnx_migrate.verify.inputs.sizes import size_choices
from tests.verify.harness import net, outputs


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
        outputs(model, generate_feed(model, None, size_choices(model)[0], "wide", seed))


def test_two_inputs_that_are_added_share_the_table():
    text = "(int64[3] a, int64[3] b) => (float[3] y) { j = Add(a, b) y = Gather(w, j) }"
    found = input_ranges(net(text, w=[1.0] * 10))
    assert [(found[name].low, found[name].high) for name in "ab"] == [(0, 4), (0, 4)]


def test_a_number_of_steps_is_followed_through_floats():
    text = """(float start, float end, float step) => (float[n] y) {
      d = Sub(end, start) q = Div(d, step) c = Ceil(q) n = Cast<to=7>(c)
      y = Loop(n, "") <body = b (int64 i, bool c0) => (bool c1, float e) { c1 = Identity(c0) e = Cast<to=1>(i) }> }"""
    model = net(text)
    feed = generate_feed(model, None, size_choices(model)[0], "normal", 0)
    assert 1 <= len(outputs(model, feed)["y"]) <= 5


def test_guesses_and_exact_vectors_are_not_computed_with():
    model = net("(int64[3] a, int64[3] b) => (int64[3] y) { y = Add(a, b) }")
    (node,) = model.graph.node
    assert range_before(node, 0, Range(0, 1, weak=True), Facts(model)) is None
    assert range_before(node, 0, Range.exactly(1, 2), Facts(model)) is None
    assert range_before(node, 0, Range(0, 8), Facts(model)) == Range(0, 4)
