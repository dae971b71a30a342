"""Value by value, a fault shows at its own node and rounding does not add up."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.equivalence import same_inputs
from onnx_migrate.verify.equivalence.cut_model import CutModel
from onnx_migrate.verify.equivalence.same_inputs import first_difference, keeps_all_names
from tests.verify.harness import ULP, net, runnable

CHAIN = "(float[N,4] x) => (float[N,4] y) { a = Mul(x, w) b = Exp(a) c = Add(b, k) d = Relu(c) y = Tanh(d) }"
W, K = np.float32([1, 2, -1, 0.5]), np.float32([-2, -1, 0, 1])
FEED = {"x": np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)}


def difference(before, after, *, claimed=True):
    return first_difference(before, after, [FEED], 8, claimed=claimed)


def test_the_node_that_computes_something_else_is_named():
    other = CHAIN.replace("c = Add", "c = Sub")
    found = difference(runnable(CHAIN, w=W, k=K), runnable(other, w=W, k=K))
    assert found.startswith("from the same inputs Sub 'c' computes another 'c': ")


def test_rounding_is_no_difference_unless_a_constant_has_changed():
    before, after = runnable(CHAIN, w=W, k=K), runnable(CHAIN, w=W * np.float32(1 + ULP), k=K)
    assert difference(before, after, claimed=False) == ""
    assert "the constant 'w' differs" in difference(before, after)
    assert "'a'" in difference(before, runnable(CHAIN, w=W * np.float32(1.0001), k=K), claimed=False)


@pytest.mark.parametrize("memory", [1, 1 << 29])
def test_in_one_run_and_in_many_the_same_is_found(memory, monkeypatch):
    monkeypatch.setattr(same_inputs, "_MEMORY", memory)
    before = runnable(CHAIN, w=W, k=K)
    assert difference(before, before) == ""
    assert "'d'" in difference(before, runnable(CHAIN.replace("Relu", "Abs"), w=W, k=K))


def test_in_many_runs_no_node_is_run_twice_by_a_model(monkeypatch):
    """Three models run each part: the original, to know its values, and both models cut at them."""
    built, make = [], CutModel.__init__
    monkeypatch.setattr(
        CutModel, "__init__", lambda *args: (built.append((args[2], args[3])), make(*args))[1]
    )
    monkeypatch.setattr(same_inputs, "_MEMORY", 1)
    before = runnable(CHAIN, w=W, k=K)
    assert difference(before, before) == ""
    assert [wanted for _, wanted in built[::3]] == [["a"], ["b"], ["c"], ["d"], ["y"]]
    assert [sorted(given) for given, _ in built[::3]] == [[], ["a"], ["b"], ["c"], ["d"]]


def test_values_without_a_counterpart_are_passed_over():
    other = CHAIN.replace("b = Exp(a) c = Add(b, k)", "e = Neg(a) f = Neg(e) g = Exp(f) c = Add(k, g)")
    assert difference(runnable(CHAIN, w=W, k=K), runnable(other, w=W, k=K)) == ""


def test_whether_all_names_are_kept():
    more = CHAIN.replace("y = Tanh(d)", "z = Neg(d) s = Neg(z) y = Tanh(s)")
    assert keeps_all_names(net(CHAIN), net(more))
    assert not keeps_all_names(net(more), net(CHAIN))


def test_random_operators_cannot_be_compared():
    noisy = runnable("(float[4] x) => (float[4] y) { r = RandomNormalLike (x) y = Add (x, r) }")
    assert "random" in first_difference(noisy, noisy, [{"x": np.ones(4, np.float32)}], 8, claimed=True)


def test_a_name_that_stands_for_another_value_is_no_difference_without_a_claim():
    one = runnable("(float[N,4] x) => (float[N,4] y) { a = Add(x, x) y = Relu(a) }")
    other = "(float[N,4] x) => (float[N,4] y) { a = Relu(x) y = Add(a, a) }"
    assert difference(one, runnable(other), claimed=False) == ""
    assert "'a'" in difference(one, runnable(other))
    wrong = runnable(other.replace("Add(a, a)", "Sum(a, a, a)"))
    assert "Sum 'y' computes another 'y'" in difference(one, wrong, claimed=False)
