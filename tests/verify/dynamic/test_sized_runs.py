"""Single runs at chosen sizes, and what is required of each."""

from __future__ import annotations

import pytest

from onnx_migrate.verify.compare.tolerance import Tolerance
from onnx_migrate.verify.dynamic.sized_runs import RequirementViolated, SizedRunner
from onnx_migrate.verify.evaluators import EvaluationError
from tests.verify.harness import net, runnable


def runner(graph, symbols, batch=()):
    model = net(graph)
    return SizedRunner(runnable(model), model, symbols, set(batch), Tolerance(), 0)


RELU = "(float[N,4] x) => (float[N,4] y) { y = Relu(x) }"


def test_a_run_has_the_sizes_asked_for_and_is_recorded():
    found = runner(RELU, {"N": 1})
    feed, values = found.run({"N": 5})
    assert feed["x"].shape == values["y"].shape == (5, 4)
    assert [(dict(trial.sizes), trial.problem) for trial in found.trials] == [({"N": 5}, "")]


def test_a_failed_run_is_recorded_with_its_error():
    found = runner(net("(float[N,4] x) => (float[1,4] y) { y = Reshape(x, s) }", s=[1, 4]), {"N": 1})
    found.run_frozen()
    with pytest.raises(EvaluationError):
        found.run({"N": 2})
    assert [bool(trial.problem) for trial in found.trials] == [False, True]


def test_a_wrong_shape_is_a_violation_that_says_what_varied():
    found = runner("(float[N,M] x) => (float[1,M] y) { y = Relu(x) }", {"N": 1, "M": 4})
    found.run_frozen()
    with pytest.raises(RequirementViolated) as caught:
        found.run({"N": 2, "M": 4})
    assert caught.value.output == "y"
    assert caught.value.varied == {"N"}


def test_other_open_dims_get_sizes_at_which_the_frozen_model_runs():
    window = net("(float[N,T] x) => (float[N,A,16] y) { y = Reshape(x, s) }", s=[0, -1, 16])
    found = runner(window, {"N": 1})
    assert found.run_frozen()["y"].shape == (1, 1, 16)
    assert len(found.trials) == 1
    assert found.run({"N": 3})[0]["x"].shape == (3, 16)


def test_values_that_the_model_refuses_are_corrected_for_all_sizes():
    text = """(float[N,6] x, int64[1] n) => (float[N,6,1] y) <int64[2] k = {-1, 6}> {
      m = Mul(n, n) s = Concat<axis=0>(k, m) y = Reshape(x, s) }"""
    found = runner(text, {"N": 1})
    found.run_frozen()
    assert found.run({"N": 3})[1]["y"].shape == (3, 6, 1)


def test_a_model_that_runs_at_no_size_is_a_violation_with_the_node():
    broken = net("(float[N,4] x) => (float[7] y) { [bad] y = Reshape(x, s) }", s=[7])
    with pytest.raises(RequirementViolated, match="does not run at its original sizes") as caught:
        runner(broken, {"N": 1}).run_frozen()
    assert caught.value.node == "bad"


def test_inputs_above_256_megabytes_are_a_violation():
    with pytest.raises(RequirementViolated, match="256 MB"):
        runner("(float[N,100000] x) => (float[N,100000] y) { y = Relu(x) }", {"N": 1}).feed({"N": 1000})


def test_values_are_the_same_within_rounding_and_random_ones_are_not_compared():
    found = runner(
        "(float[N,4] x) => (float[N,4] y, float[N,4] r) { y = Relu(x) n = RandomNormalLike(x) r = Add(n, x) }",
        {"N": 1},
    )
    feed, values = found.run({"N": 2})
    found.require_same("y", values["y"], values["y"] * (1 + 1e-7), feed, "here")
    found.require_same("r", values["r"], values["r"] + 1, feed, "here")
    with pytest.raises(RequirementViolated, match="output 'y' differs here: 8 of 8 elements"):
        found.require_same("y", values["y"], values["y"] + 1, feed, "here")
