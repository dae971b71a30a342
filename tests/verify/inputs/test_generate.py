"""Made-up inputs stay within what a model can take."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.verify.inputs.generate import generate_feed
from onnx_migrate.verify.inputs.sizes import choice_after_crash, size_choices
from onnx_migrate.verify.inputs.value_ranges import input_ranges

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '


def model(text):
    return onnx.parser.parse_model(HEAD + text)


def made(text, style="normal"):
    net = model(text)
    return generate_feed(net, None, size_choices(net)[0], style, 0)


EMBEDDING = (
    "(int64[N,T] ids) => (float[N,T,2] y) <float[3,2] w = {{1,2,3,4,5,6}}> {{ {0} y = Gather (w, i) }}"
)


@pytest.mark.parametrize(
    "way", ["i = Identity(ids)", "c = Cast<to=6>(ids) i = Cast<to=7>(c)", "i = Abs(ids)"]
)
def test_indices_stay_inside_their_table(way):
    ranges = input_ranges(model(EMBEDDING.format(way)))
    if "Abs" in way:
        assert "ids" not in ranges, "what an operator computes of an input is not followed"
    else:
        assert (ranges["ids"].low, ranges["ids"].high) == (0, 2)


def test_an_index_is_followed_into_functions_and_branches():
    text = """<ir_version: 8, opset_import: ["" : 17, "d" : 1]>
    g (int64[4] ids, bool c) => (float[4,2] y) <float[3,2] w = {1,2,3,4,5,6}> {
      i = d.pass (ids)
      y = If (c) <then_branch = t () => (float[4,2] a) { a = Gather (w, ids) },
                  else_branch = e () => (float[4,2] b) { b = Gather (w, ids) }> }
    <domain: "d", opset_import: ["" : 17]> pass (u) => (v) { v = Identity (u) }"""
    assert input_ranges(onnx.parser.parse_model(text))["ids"].high == 2


def test_one_symbol_has_one_size_and_unknowns_are_their_own():
    feed = made("(float[N,3,H,W] a, float[N,3,H,W] b) => (float[N,3,H,W] y) { y = Add (a, b) }")
    assert feed["a"].shape == feed["b"].shape
    assert len(set(feed["a"].shape)) == 4
    net = model("(float[M,3,H,W] a) => (float[M,3,H,W] y) { y = Relu (a) }")
    for dim, name in zip(net.graph.input[0].type.tensor_type.shape.dim, ("-1", "3", "?", "?"), strict=True):
        dim.dim_param = name
    net.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 3
    shape = generate_feed(net, None, size_choices(net)[0], "normal", 0)["a"].shape
    assert shape[2] != shape[3]


def test_floats_are_signed_and_feeds_differ():
    text = "(float[64] x) => (float[64] y) { y = Relu (x) }"
    normal, wide = made(text)["x"], made(text, "wide")["x"]
    assert normal.dtype == np.float32
    assert (normal < 0).any()
    assert (normal > 0).any()
    assert np.abs(wide).max() > 6
    assert (wide == 0).any()
    assert np.array_equal(normal, made(text)["x"])


@pytest.mark.parametrize("kind", ["bool", "string", "float16", "double", "uint8", "int8"])
def test_every_type_can_be_made(kind):
    feed = made(f"({kind}[5] x) => ({kind}[5] y) {{ y = Identity (x) }}")
    assert feed["x"].shape == (5,)


def test_initializers_are_not_fed():
    net = model("(float[2] x, float[2] w) => (float[2] y) <float[2] w = {1, 2}> { y = Add (x, w) }")
    assert set(generate_feed(net, None, size_choices(net)[0], "normal", 0)) == {"x"}


def test_what_does_not_fit_memory_is_not_made():
    assert made("(float[100000,100000] x) => (float[100000,100000] y) { y = Relu (x) }") is None


def shapes(text, place=0):
    net = model(text)
    return {
        name: value.shape
        for name, value in generate_feed(net, None, size_choices(net)[place], "normal", 0).items()
    }


def test_lengths_go_where_they_are_meant():
    last = shapes("(float[N,H,W,3] x, float[2,M,5] h) => (float[N,H,W,3] y) { y = Relu (x) }")
    assert last == {"x": (2, 64, 96, 3), "h": (2, 2, 5)}
    first = shapes("(float[N,3,H,W] x, float[1,T,5] h) => (float[N,3,H,W] y) { y = Relu (x) }")
    assert (first["x"], first["h"][0::2]) == ((2, 3, 64, 96), (1, 5))


def test_every_length_is_tried_soon():
    plans = size_choices(model("(float[N,T] a, float[N,3,H,W] b) => (float[N,T] y) { y = Relu (a) }"))
    assert len(plans) == 64
    assert {plan.length for plan in plans} >= {7, 16, 1, 64, 128}
    assert {plan.batch for plan in plans[:10]} == {1, 2, 3}


def test_the_plan_behind_a_crash_has_other_lengths():
    plans = size_choices(model("(float[N,T] a) => (float[N,T] y) { y = Relu (a) }"))
    place, seen = 0, []
    while place < len(plans):
        seen.append(plans[place].length)
        place = choice_after_crash(plans, place)
    assert len(seen) == len(set(seen))
    assert max(seen) == 16000
