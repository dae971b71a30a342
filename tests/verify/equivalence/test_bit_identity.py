"""Bit-identity is required of inner values too, where the outputs would hide a difference."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.verify import Kind
from onnx_migrate.verify.equivalence import bit_identity
from onnx_migrate.verify.evaluators import EvaluationError
from tests.verify.harness import check, net, verdict

DEAD = "(float[N,4] x) => (float[N,4] y) { p = Mul(x, w) d = Sub(p, far) r = Relu(d) y = Add(r, x) }"
FAR = {"far": [1e6, 0, 0, 0]}
W = np.array([1, 2, 3, 4], np.float32)
OTHER = np.array([9, 2, 3, 4], np.float32)
"""Differs where the Relu always outputs zero."""


@pytest.mark.parametrize("same", [True, False])
def test_a_difference_that_a_relu_hides_is_found(same):
    before, after = net(DEAD, w=W, **FAR), net(DEAD, w=OTHER, **FAR)
    assert verdict(before, after).kind is Kind.VERIFIED, "no output shows it"
    reason = "bit-identity is required, but without optimisation 'd' differs"
    assert check(before, after if same else before, Kind.DIFFERS, reason, exact=after).exact is False


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
    found, compare = [], bit_identity._compare
    monkeypatch.setattr(bit_identity, "_compare", lambda *args: (found.append(args[2]), compare(*args)))
    return found


def test_the_runs_for_the_outputs_compare_all_inner_values_if_memory_allows(runs):
    assert check(CHAIN, CHAIN, Kind.VERIFIED, exact=CHAIN).notes == ()
    assert runs == []
    assert bit_identity.recorded_with_outputs(net(CHAIN), net(CHAIN), {}) == ["e", "d", "c", "b", "a"]


def test_what_is_recorded_with_the_outputs_is_nearest_to_them_then_spread_over_the_model(monkeypatch):
    chain = " ".join(f"v{index + 1} = Abs(v{index})" for index in range(19))
    long = net(f"(float[2,4] x) => (float[2,4] y) {{ v0 = Abs(x) {chain} y = Abs(v19) }}")
    monkeypatch.setattr(bit_identity, "_MEMORY", 8 * 2 * 4 * 4)  # eight values of two times four numbers
    names = bit_identity.recorded_with_outputs(long, long, {"x": np.zeros((2, 4))})
    assert names[:2] == ["v19", "v18"], "a quarter of the memory is for these"
    rest = sorted(int(name[1:]) for name in names[2:])
    assert len(rest) == 6
    assert rest[0] < 4
    assert rest[-1] > 12


def test_a_value_that_does_not_fit_is_passed_over_for_the_next_that_does(monkeypatch):
    wide = """(float[2,4] x) => (float[2,4] y) <int64[2] many = {50, 1}> {
        a = Abs(x) b = Tile(a, many) c = Abs(b) d = ReduceMax<keepdims = 0, axes = [0]>(c) e = Abs(d) y = Add(e, x) }"""
    monkeypatch.setattr(bit_identity, "_MEMORY", 64)
    assert bit_identity.recorded_with_outputs(net(wide), net(wide), {"x": np.zeros((2, 4))}) == ["e", "d"]


def test_the_size_of_a_value_is_that_of_its_elements():
    text = """(float[2,4] x) => (float[2,4] y) { h = Cast<to = 10>(x) d = Cast<to = 11>(x) b = Cast<to = 9>(x)
        i = Cast<to = 2>(x) s = Cast<to = 8>(x) y = Abs(x) }"""
    sizes = bit_identity.value_sizes(net(text), {"x": np.zeros((2, 4), np.float32)})
    assert sizes == {"h": 16, "d": 64, "b": 8, "i": 8, "s": 64}


def test_a_model_that_does_not_load_with_its_inner_values_is_run_without(monkeypatch):
    open_model = bit_identity.open_model

    def refuse(model, configuration):
        if len(model.proto().graph.output) > 1:
            raise EvaluationError("no such output", loading=True)
        return open_model(model, configuration)

    monkeypatch.setattr(bit_identity, "open_model", refuse)
    found = check(CHAIN, CHAIN, Kind.VERIFIED, exact=CHAIN)
    assert "inner values was not checked" in found.notes[0]
    assert "no such output" in found.notes[0]


def test_several_runs_compare_each_value_once_where_memory_is_short(runs, monkeypatch):
    monkeypatch.setattr(bit_identity, "_MEMORY", 2 * 2 * 4 * 4)  # two values of two times four numbers
    assert check(CHAIN, CHAIN, Kind.VERIFIED, exact=CHAIN).notes == ()
    first = bit_identity.recorded_with_outputs(net(CHAIN), net(CHAIN), {"x": np.zeros((2, 4))})
    assert [len(names) for names in (first, *runs)] == [2, 2, 1]
    assert sorted(name for names in (first, *runs) for name in names) == list("abcde")


def test_the_time_is_limited_and_the_verdict_says_how_many_were_compared(monkeypatch):
    monkeypatch.setattr(bit_identity, "_MEMORY", 2 * 2 * 4 * 4)
    monkeypatch.setattr("onnx_migrate.verify.equivalence.check._PATIENCE", 0.0)
    monkeypatch.setattr(bit_identity, "_compare", lambda *_: bit_identity.time.sleep(1))
    found = check(CHAIN, CHAIN, Kind.VERIFIED, exact=CHAIN)
    assert "checked for 4 of 5 inner values" in found.notes[0]


def test_sizes_are_unknown_where_the_inference_raises_whatever_it_does(monkeypatch):
    """onnx 1.23 raises ValueError for a branch whose output has an empty type."""

    def refuse(*args, **kwargs):
        raise ValueError("Invalid tensor data type 0.")

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", refuse)
    assert bit_identity.value_sizes(net("(float[2] x) => (float[2] y) { y = Abs(x) }"), {}) == {}
    check(CHAIN, CHAIN, Kind.VERIFIED, exact=CHAIN)
