"""Inner values are compared bit for bit, and models are cut at them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from onnx import helper, numpy_helper

from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.equivalence import common_values, inner_values, result_run
from onnx_migrate.verify.equivalence.common_values import values_to_record
from onnx_migrate.verify.equivalence.inner_values import CutModel, Reads
from onnx_migrate.verify.evaluators import EvaluationError
from tests.verify.harness import check, net, runnable, verdict

DEAD = "(float[N,4] x) => (float[N,4] y) { p = Mul(x, w) d = Sub(p, far) r = Relu(d) y = Add(r, x) }"
FAR = {"far": [1e6, 0, 0, 0]}
W = np.array([1, 2, 3, 4], np.float32)
OTHER = np.array([9, 2, 3, 4], np.float32)
"""Differs where the Relu always outputs zero."""


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.usefixtures("without_corners")
def test_a_difference_that_a_relu_hides_is_found(same):
    before, after = net(DEAD, w=W, **FAR), net(DEAD, w=OTHER, **FAR)
    assert verdict(before, after).kind is Kind.VERIFIED, "no output shows it"
    reason = "bit-identity is required, but without optimisation 'd' differs"
    assert check(before, after if same else before, Kind.DIFFERS, reason, exact=after).exact is False


@pytest.mark.usefixtures("without_corners")
def test_a_value_whose_name_is_gone_is_not_compared():
    renamed = DEAD.replace("d =", "e =").replace("(d)", "(e)")
    same = net(DEAD, w=W, **FAR)
    found = check(same, same, Kind.VERIFIED, exact=net(renamed, w=OTHER, **FAR))
    assert (found.exact, found.notes) == (True, ())


def test_inner_values_of_a_random_model_are_not_compared():
    text = "(float[N,4] x) => (float[N,4] y) { y = Abs(x) n = RandomNormalLike<seed=1.0>(x) q = Add(n, x) r = Relu(q) }"
    assert check(text, text, Kind.VERIFIED, exact=text.replace("1.0", "2.0")).exact is True


CHAIN = (
    "(float[N,4] x) => (float[N,4] y) { a = Abs(x) b = Abs(a) c = Abs(b) d = Abs(c) e = Abs(d) y = Abs(e) }"
)


@pytest.fixture
def runs(monkeypatch):
    """The names that each run takes out of the model."""
    found, compute = [], inner_values.computed_by_both

    def counted(original, result, parts, *args):
        found.extend(parts)
        return compute(original, result, parts, *args)

    monkeypatch.setattr(inner_values, "computed_by_both", counted)
    return found


def test_the_runs_for_the_outputs_compare_all_inner_values_if_memory_allows(runs):
    assert check(CHAIN, CHAIN, Kind.VERIFIED, exact=CHAIN).notes == ()
    assert runs == []
    assert values_to_record(net(CHAIN), net(CHAIN), {}) == ["e", "d", "c", "b", "a"]


def test_a_model_that_does_not_load_with_its_inner_values_is_run_without(monkeypatch):
    open_model = result_run.open_model

    def refuse(model, configuration, inner=()):
        if inner or len(model.proto().graph.output) > 1:
            raise EvaluationError("no such output", loading=True)
        return open_model(model, configuration)

    for module in (result_run, inner_values):
        monkeypatch.setattr(module, "open_model", refuse)
    found = check(CHAIN, CHAIN, Kind.VERIFIED, exact=CHAIN)
    assert "inner values was not checked" in found.notes[0]
    assert "no such output" in found.notes[0]


def test_several_runs_compare_each_value_once_where_memory_is_short(runs, monkeypatch):
    for module in (common_values, inner_values):
        monkeypatch.setattr(module, "_MEMORY", 2 * 2 * 4 * 4)  # two values of two times four numbers
    assert check(CHAIN, CHAIN, Kind.VERIFIED, exact=CHAIN).notes == ()
    first = values_to_record(net(CHAIN), net(CHAIN), {"x": (2, 4)})
    assert [len(names) for names in (first, *runs)] == [2, 2, 1]
    assert sorted(name for names in (first, *runs) for name in names) == list("abcde")


def test_the_time_is_limited_and_the_verdict_says_how_many_were_compared(monkeypatch):
    for module in (common_values, inner_values):
        monkeypatch.setattr(module, "_MEMORY", 2 * 2 * 4 * 4)
    monkeypatch.setattr("onnx_migrate.verify.equivalence.segment_check._PATIENCE", 0.0)
    monkeypatch.setattr(inner_values, "computed_by_both", lambda *_: time.sleep(1) or iter(()))
    found = check(CHAIN, CHAIN, Kind.VERIFIED, exact=CHAIN)
    assert "of 5 inner values, 4 were compared" in found.notes[0]


STEPS = (
    "(float[2] x) => (float[2] y) { a = Abs(x) i = Cast<to=7>(a) b = Cast<to=1>(i) c = Add(b, a) y = Neg(c) }"
)
BRANCH = """(float[2] x, bool b) => (float[2] y) { a = Abs(x)
    y = If (b) <then_branch = t () => (float[2] p) { p = Neg(a) }, else_branch = e () => (float[2] q) { q = Exp(a) }> }"""


def test_each_wanted_value_is_computed_from_the_given_values_of_others():
    given = {"a": np.float32([10, 20]), "c": np.float32([5, 6])}
    found = CutModel(runnable(STEPS), given, ["c"]).run({**given, "x": np.float32([1, 1])})
    assert set(found) == {"c"}
    assert np.array_equal(found["c"], [20, 40]), "from the given a, not from x"


def test_what_a_branch_reads_is_given_too():
    given = {"a": np.float32([3, 4]), "y": np.float32([0, 0])}
    found = CutModel(runnable(BRANCH), given, ["y"]).run({**given, "b": np.array(True)})
    assert np.array_equal(found["y"], [-3, -4])


def test_sparse_initializers_that_are_read_are_kept():
    model = net("(float[2] x) => (float[2] y) { a = Abs(x) b = Add(a, other) y = Mul(b, k) }")
    for name in ("k", "other"):
        values = numpy_helper.from_array(np.float32([3]), name)
        places = numpy_helper.from_array(np.array([1]))
        model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2]))
    cut = CutModel(runnable(model), {"b": np.zeros(2, np.float32)}, ["y"])
    assert np.array_equal(cut.run({"b": np.float32([4, 5])})["y"], [0, 15])


def test_nothing_wanted_is_nothing_run():
    assert CutModel(runnable(STEPS), {}, []).run({}) == {}


def test_the_cuts_that_a_value_is_computed_from_are_found_past_others():
    reads = Reads(net(STEPS), ["a", "c", "y"])
    assert list(reads.by(["c"])) == ["a"]
    assert set(reads.all_by(["c"])) == {"a", "b", "i"}
