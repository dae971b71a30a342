"""What the original runs on, and what it computes."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.verify import Feed, Feeds, Settings, Tolerance
from onnx_migrate.verify.equivalence import feed_search
from onnx_migrate.verify.equivalence.feed_search import Extent, FeedSearch
from onnx_migrate.verify.equivalence.original_run import run_original
from onnx_migrate.verify.evaluators import LEVELS, REFERENCE, UNOPTIMIZED, EvaluationError, open_model
from tests.support.paths import FIXTURES
from tests.verify.harness import CONSTANT, RELU, RENAMED, ULP, net, original_run, runnable, wrong_optimiser


def test_every_feed_runs_at_both_levels_of_optimisation():
    run = original_run(RELU)
    assert tuple(run.runs) == LEVELS
    assert run.first == LEVELS[0]
    assert [len(outputs) for outputs in run.runs.values()] == [len(run.feeds)] * 2
    note = run.feed_notes[0]
    assert (note.name, note.seed, note.shapes) == ("normal", 0, (("x", (2, 4)),))
    assert run.notes == ()


def test_noise_is_measured_by_inputs_an_ulp_away():
    """Sin(x * x) moves by at most 2 * x * x ulps of 1 where x moves by one: ten times what is measured is allowed."""
    run = original_run("(float[64] x) => (float[64] y) { a = Mul(x, x) y = Sin(a) }")
    allowed = []
    for index, outputs in enumerate(run.runs[run.first]):
        entry = run.noise.compare("y", outputs["y"], outputs["y"] + 1, index, Tolerance())[0]
        square = np.max(run.feeds[index].inputs["x"].astype(np.float64) ** 2)
        assert entry.allowed < 10 * 4 * ULP * square
        allowed.append(entry.allowed)
    assert allowed[1] > 10 * allowed[0] > 80 * ULP, "wide inputs move further"


@wrong_optimiser
def test_an_output_that_the_optimiser_changes_is_left_out_of_the_optimised_run():
    model = onnx.load(FIXTURES / "pad_maxpool_opset9.onnx")
    run = original_run(model)
    assert "y" in run.runs[LEVELS[0]][0]
    assert "y" not in run.runs[LEVELS[1]][0]
    assert "optimisation changes 'y' of the original itself" in run.notes[0]


def test_an_output_that_optimisation_moves_by_more_than_rounding_does_is_noted(monkeypatch):
    """ONNX Runtime multiplies by int4 weights with data rounded to 8 bits, once it optimises, unless it is told not to."""
    monkeypatch.setattr(onnxruntime.SessionOptions, "add_session_config_entry", lambda *_: None)
    rng = np.random.default_rng(0)
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.INT4, [32, 16], rng.integers(-8, 8, 32 * 16))
    model = net(
        """(float[4,32] x) => (float[4,16] y) {
        d = DequantizeLinear <axis = 0, block_size = 16> (w, s) m = MatMul (x, d) y = Relu (m) }""",
        opset=21, ir=10, s=rng.random((2, 16), np.float32),
    )  # fmt: skip
    model.graph.initializer.append(weights)
    run = original_run(model)
    assert "y" in run.runs[LEVELS[1]][0]
    assert (
        "optimisation changes 'y' of the original itself by more than 0.1 % of its largest value"
        in run.notes[0]
    )


def test_inner_values_of_a_constant_output_are_in_every_run():
    run = original_run(CONSTANT)
    assert run.upstream.names == {"y": ("a",)}
    assert run.upstream.inner == ["a"]
    assert all(set(outputs) == {"y", "a"} for runs in run.runs.values() for outputs in runs)
    assert run.inner_names(net(RENAMED)) == []


def test_an_output_without_varying_inner_values_is_a_weak_proof():
    run = original_run(net("(float[1,4] x) => (float[1,4] y) { y = Mul(x, zero) }", zero=0.0))
    assert run.upstream.names == {}
    assert "weak proof" in run.notes[-1]
    assert "'y'" in run.notes[-1]
    assert "--input-data" in run.notes[-1]


def test_onnx_original_runs_an_original_that_onnx_runtime_does_not_load_except_resize():
    newest = onnx.defs.onnx_opset_version()
    custom = net(RELU, opset=newest, ir=max(8, onnx.IR_VERSION))
    run = original_run(custom)
    assert run.first in (LEVELS[0], REFERENCE)
    broken = net(
        "(float[1,1,4,4] x) => (float[1,1,8,8] y) <float[3] s = {1., 2., 2.}> { y = Resize(x, , s) }"
    )
    with pytest.raises(EvaluationError):
        run_original(runnable(broken), runnable(broken), Settings())


def test_the_seed_chooses_the_inputs():
    one, same, other = (original_run(RELU, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.feeds[0].inputs["x"], same.feeds[0].inputs["x"])
    assert not np.array_equal(one.feeds[0].inputs["x"], other.feeds[0].inputs["x"])


def search(graph, after=None, **tensors):
    model = net(graph, **tensors)
    evaluator = open_model(runnable(model), UNOPTIMIZED)
    return FeedSearch(evaluator, model, net(after) if after else model, 0, Extent())


def test_two_distributions_are_run():
    found = search(RELU)
    found.generate()
    assert [feed.name for feed in found.feeds] == ["normal", "wide"]
    assert [run["y"].shape for run in found.outputs] == [(2, 4), (2, 4)]
    assert (found.outputs[0]["y"] == np.maximum(found.inputs[0]["x"], 0)).all()


def test_sizes_are_tried_until_the_model_runs():
    picky = "(float[N,T] x) => (float[N,4,4] y) { y = Reshape(x, s) }"
    found = search(picky, s=[0, 4, 4])
    found.generate()
    assert found.inputs[0]["x"].shape[1] == 16


def test_a_model_that_runs_at_no_size_raises_the_first_error():
    found = search("(float[N,T] x) => (float[3,11] y) { [bad] y = Reshape(x, s) }", s=[3, 11])
    with pytest.raises(EvaluationError) as caught:
        found.generate()
    assert caught.value.node == "bad"


def test_an_open_dim_has_the_size_that_the_result_fixes():
    found = search(RELU, after=RELU.replace("[N,4]", "[5,4]"))
    found.generate()
    assert found.inputs[0]["x"].shape == (5, 4)


LARGE_ONLY = "(float[64] x) => (float[64] y) { d = Sub(x, c) y = Relu(d) }"
"""Varies on inputs above 50, as only pixels are."""


def test_further_distributions_are_tried_where_outputs_do_not_vary():
    found = search(LARGE_ONLY, c=50.0)
    found.generate()
    assert found.uninformative() == ["y"]
    found.generate_more(["y"])
    assert "pixels" in [feed.name for feed in found.feeds]
    assert found.uninformative() == []


def test_a_distribution_on_which_the_model_fails_is_noted():
    text = "(float[64] x) => (float[n] y) { s = Mul(x, x) i = Cast<to=7>(s) y = Gather(t, i) }"
    found = search(text, t=np.arange(12.0))
    found.generate()
    assert [feed.name for feed in found.feeds] == ["normal"]
    assert "'wide' random inputs, so onnx-migrate skips them" in found.notes[0]


def test_the_users_inputs_are_checked_and_run():
    found = search(RELU)
    found.use(Feeds((Feed("mine", {"#0": np.full((1, 4), -1, np.float32)}),)))
    assert found.outputs[0]["y"].tolist() == [[0, 0, 0, 0]]
    with pytest.raises(UsageError):
        found.use(Feeds((Feed("mine", {"x": np.zeros((1, 5), np.float32)}),)))


def test_a_model_whose_first_run_takes_long_is_run_on_one_distribution(monkeypatch):
    monkeypatch.setattr(feed_search, "EXPENSIVE", -1.0)
    expensive = search(RELU)
    expensive.generate()
    assert expensive.expensive
    assert [feed.name for feed in expensive.feeds] == ["normal"]
    assert "fewer runs were made" in expensive.notes[0]
    constant = search("(float[1,4] x) => (float[1,4] y) { y = Sub(x, x) }")
    constant.generate()
    constant.generate_more(["y"])
    assert [feed.name for feed in constant.feeds][:2] == ["normal", "wide"], "as it does not vary"


@pytest.mark.parametrize(("rows", "pads"), [(2, 1), (1, 0)], ids=["it runs", "it does not"])
def test_texts_of_the_second_inputs_end_with_the_id_that_pads_them_where_the_model_runs_on_it(rows, pads):
    text = """(int64[1,4] x) => (float[1,4] y) <int64 pad = {1}> { e = Equal(x, pad) l = Cast<to=7>(e)
        h = Gather(few, l) g = Gather(t, x) y = Mul(g, h) }"""
    found = search(text, t=np.arange(1000.0), few=np.ones(rows))
    found.generate()
    assert [feed.name for feed in found.feeds] == ["normal", "wide"]
    assert [int((feed.inputs["x"] == 1).sum()) for feed in found.feeds] == [0, 2 * pads]
    assert not found.notes
