"""Inputs are followed to the nodes that restrict their values."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.verify.inputs.constraints.value_ranges import input_ranges
from onnx_migrate.verify.inputs.generate import generate_feed
from onnx_migrate.verify.inputs.sizes import size_choices
from tests.verify.harness import net, outputs

EMBEDDING = (
    "(int64[N,T] ids) => (float[N,T,2] y) <float[3,2] w = {{1,2,3,4,5,6}}> {{ {0} y = Gather (w, i) }}"
)


@pytest.mark.parametrize("nodes", ["i = Identity(ids)", "c = Cast<to=6>(ids) i = Cast<to=7>(c)"])
def test_indices_stay_inside_their_table(nodes):
    model = net(EMBEDDING.format(nodes))
    assert (input_ranges(model)["ids"].low, input_ranges(model)["ids"].high) == (0, 2)
    for seed in range(20):
        feed = generate_feed(model, None, size_choices(model)[0], "wide", seed)
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
