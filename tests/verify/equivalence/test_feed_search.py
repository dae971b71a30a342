"""The search for inputs that the original runs on and that make its outputs vary."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.verify import Feed, Feeds
from onnx_migrate.verify.equivalence import feed_search
from onnx_migrate.verify.equivalence.feed_search import FeedSearch
from onnx_migrate.verify.evaluators import UNOPTIMIZED, EvaluationError, open_model
from tests.verify.harness import RELU, net, runnable


def search(graph, after=None, **tensors):
    model = net(graph, **tensors)
    evaluator = open_model(runnable(model), UNOPTIMIZED)
    return FeedSearch(evaluator, model, net(after) if after else model, 0)


def test_two_distributions_are_run():
    found = search(RELU)
    found.generate(0)
    assert [feed.name for feed in found.feeds] == ["normal", "wide"]
    assert [run["y"].shape for run in found.outputs] == [(2, 4), (2, 4)]
    assert (found.outputs[0]["y"] == np.maximum(found.inputs[0]["x"], 0)).all()


def test_sizes_are_tried_until_the_model_runs():
    picky = "(float[N,T] x) => (float[N,4,4] y) { y = Reshape(x, s) }"
    found = search(picky, s=[0, 4, 4])
    found.generate(0)
    assert found.inputs[0]["x"].shape[1] == 16


def test_a_model_that_runs_at_no_size_raises_the_first_error():
    found = search("(float[N,T] x) => (float[3,11] y) { [bad] y = Reshape(x, s) }", s=[3, 11])
    with pytest.raises(EvaluationError) as caught:
        found.generate(0)
    assert caught.value.node == "bad"


def test_an_open_dim_has_the_size_that_the_result_fixes():
    found = search(RELU, after=RELU.replace("[N,4]", "[5,4]"))
    found.generate(0)
    assert found.inputs[0]["x"].shape == (5, 4)


LARGE_ONLY = "(float[64] x) => (float[64] y) { d = Sub(x, c) y = Relu(d) }"
"""Varies on inputs above 50, as only pixels are."""


def test_further_distributions_are_tried_where_outputs_do_not_vary():
    found = search(LARGE_ONLY, c=50.0)
    found.generate(0)
    assert found.uninformative() == ["y"]
    found.generate_more(["y"])
    assert "pixels" in [feed.name for feed in found.feeds]
    assert found.uninformative() == []


def test_a_distribution_on_which_the_model_fails_is_noted():
    text = "(float[64] x) => (float[n] y) { s = Mul(x, x) i = Cast<to=7>(s) y = Gather(t, i) }"
    found = search(text, t=np.arange(12.0))
    found.generate(0)
    assert [feed.name for feed in found.feeds] == ["normal"]
    assert "'wide' random inputs, which are left out" in found.notes[0]


def test_the_users_inputs_are_checked_and_run():
    found = search(RELU)
    found.use(Feeds((Feed("mine", {"#0": np.full((1, 4), -1, np.float32)}),)))
    assert found.outputs[0]["y"].tolist() == [[0, 0, 0, 0]]
    with pytest.raises(UsageError):
        found.use(Feeds((Feed("mine", {"x": np.zeros((1, 5), np.float32)}),)))


def test_a_model_whose_first_run_takes_long_is_run_on_one_distribution(monkeypatch):
    monkeypatch.setattr(feed_search, "EXPENSIVE", -1.0)
    expensive = search(RELU)
    expensive.generate(0)
    assert expensive.expensive
    assert [feed.name for feed in expensive.feeds] == ["normal"]
    assert "fewer runs were made" in expensive.notes[0]
    constant = search("(float[1,4] x) => (float[1,4] y) { y = Sub(x, x) }")
    constant.generate(0)
    constant.generate_more(["y"])
    assert [feed.name for feed in constant.feeds][:2] == ["normal", "wide"], "as it does not vary"


@pytest.mark.parametrize(("rows", "pads"), [(2, 1), (1, 0)], ids=["it runs", "it does not"])
def test_texts_of_the_second_inputs_end_with_the_id_that_pads_them_where_the_model_runs_on_it(rows, pads):
    text = """(int64[1,4] x) => (float[1,4] y) <int64 pad = {1}> { e = Equal(x, pad) l = Cast<to=7>(e)
        h = Gather(few, l) g = Gather(t, x) y = Mul(g, h) }"""
    found = search(text, t=np.arange(1000.0), few=np.ones(rows))
    found.generate(0)
    assert [feed.name for feed in found.feeds] == ["normal", "wide"]
    assert [int((feed.inputs["x"] == 1).sum()) for feed in found.feeds] == [0, 2 * pads]
    assert not found.notes
