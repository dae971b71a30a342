"""Runs at chosen sizes, and what the model declares of shapes."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.dynamic.declared_shapes import (
    axes_with_symbol,
    batch_axes_of,
    common_first_axis,
    copies_of,
    inputs_with_sizes,
    item_of,
    shape_warnings,
    undeclared_shape,
)
from onnx_migrate.verify.dynamic.sized_runs import RequirementViolated, SizedRunner
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.kernel import Tolerance
from tests.verify.harness import net, runnable


def runner(graph, symbols, batch=()):
    model = net(graph)
    return SizedRunner(runnable(model), symbols, set(batch), Tolerance(), 0)


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


class Off:
    """An evaluator whose outputs are off by a number, for some feeds."""

    def __init__(self, inner, least):
        self._inner, self._least = inner, least

    def run(self, feed):
        off = 1e-3 if self._least <= len(feed["x"]) else 0
        return {name: value + np.float32(off) for name, value in self._inner.run(feed).items()}


def test_what_optimisation_changes_in_a_single_item_may_change_in_a_batch():
    whole, several = (runner(RELU, {"N": 1}, {"N"}) for _ in range(2))
    for found, least in ((whole, 1), (several, 2)):
        found.run({"N": 1})
        found._optimised = Off(found._optimised, least)
    whole.run({"N": 3})
    with pytest.raises(RequirementViolated, match="with ONNX Runtime's optimisation and without"):
        several.run({"N": 3})


MODEL = net("(float[N,3,H] x, float[N] z) => (float[N,H] y, float[A,2,A] t) { y = Relu(x) t = Relu(x) }")


def test_symbols_of_inputs_become_numbers():
    inputs = inputs_with_sizes(MODEL, {"N": 2}).graph.input
    assert [[d.dim_value or d.dim_param for d in v.type.tensor_type.shape.dim] for v in inputs] == [
        [2, 3, "H"],
        [2],
    ]
    assert axes_with_symbol(MODEL.graph.input[0], {"N", "H"}) == [0, 2]


def test_a_common_first_axis_is_one_that_every_input_has():
    assert common_first_axis(inputs_with_sizes(MODEL, {"N": 2})) == 2
    assert common_first_axis(MODEL) is None
    assert common_first_axis(net("(float[2] x, float[3] z) => (float[2] y) { y = Relu(x) }")) is None


def test_the_batch_axes_have_both_sizes_of_the_batch():
    assert batch_axes_of((2, 4, 2), (3, 4, 3), 2, 3) == [0, 2]
    assert batch_axes_of((2, 4), (3, 5), 2, 3) == [0]
    assert batch_axes_of((2, 4), (3,), 2, 3) == []


def shapes(y, t=(5, 2, 5)):
    return {"y": np.zeros(y), "t": np.zeros(t)}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (shapes((2, 7)), None),
        (shapes((2, 8)), "axis 1 of output 'y' is declared as H, which is 7 here, and has length 8"),
        (shapes((2, 7), (5, 3, 5)), "axis 1 of output 't' is declared as 2 and has length 3"),
        (
            shapes((2, 7), (5, 2, 6)),
            "axis 2 of output 't' is declared as A, which is 5 here, and has length 6",
        ),
        (shapes((2, 7, 1)), "output 'y' is declared with 2 axes and has 3"),
    ],
)
def test_outputs_have_the_shapes_declared(values, problem):
    found = undeclared_shape(MODEL, values, {"N": 2, "H": 7})
    assert (found and found[1]) == problem


def test_warnings_of_onnx_runtime_are_read():
    text = (
        "... [W] Expected shape from model of {1,4} does not match actual shape of {2,4} for output y\x1b[m\n"
    )
    assert shape_warnings(text) == {"y": ["{1,4}", "{2,4}"]}


def test_an_item_is_taken_from_every_batched_input():
    model = net("(float[N,2] x, float[3,N] h, float[4] w) => (float[N,2] y) { y = Relu(x) }")
    feed = {
        "x": np.arange(6.0).reshape(3, 2),
        "h": np.arange(9.0).reshape(3, 3),
        "w": np.arange(4.0),
    }
    item = item_of(model, feed, 1, {"N"})
    assert item["x"].tolist() == [[2, 3]]
    assert item["h"].tolist() == [[1], [4], [7]]
    assert item["w"] is feed["w"]


def test_copies_of_an_item_fill_every_batched_input():
    model = net("(float[N,2] x, float[3,N] h, float[4] w) => (float[N,2] y) { y = Relu(x) }")
    alone = {"x": np.array([[2.0, 3.0]]), "h": np.array([[1.0], [4.0], [7.0]]), "w": np.arange(4.0)}
    copies = copies_of(model, alone, 3, {"N"})
    assert copies["x"].tolist() == [[2, 3]] * 3
    assert copies["h"].tolist() == [[1] * 3, [4] * 3, [7] * 3]
    assert copies["w"] is alone["w"]


def test_an_output_is_held_to_its_expression():
    model = net("(float[N,3] x) => (float[A,3] y) { y = Concat<axis=0>(x, x) }")
    values = {"y": np.zeros((4, 3), np.float32)}
    declared = model.graph.output[0].type.tensor_type.shape.dim[0]
    declared.dim_param = "2*N"
    assert undeclared_shape(model, values, {"N": 2}) is None
    declared.dim_param = "3*N"
    assert undeclared_shape(model, values, {"N": 2}) == (
        "y",
        "axis 0 of output 'y' is declared as 3*N, which is 6 here, and has length 4",
    )
