"""The values that both models have: their sizes, which are recorded, and in which order."""

from __future__ import annotations

import numpy as np
import onnx

from onnx_migrate.verify import Kind
from onnx_migrate.verify.equivalence import common_values
from onnx_migrate.verify.equivalence.common_values import (
    ValueTypes,
    common_cuts,
    keeps_all_names,
    values_to_record,
)
from tests.verify.harness import check, net

STEPS = "(float[N,4] x) => (float[N,4] y) { a = Mul(x, w) b = Exp(a) c = Add(b, k) d = Relu(c) y = Tanh(d) }"


def test_what_is_recorded_with_the_outputs_is_nearest_to_them_then_spread_over_the_model(monkeypatch):
    chain = " ".join(f"v{index + 1} = Abs(v{index})" for index in range(19))
    long = net(f"(float[2,4] x) => (float[2,4] y) {{ v0 = Abs(x) {chain} y = Abs(v19) }}")
    monkeypatch.setattr(common_values, "_MEMORY", 8 * 2 * 4 * 4)  # eight values of two times four numbers
    names = values_to_record(long, long, {"x": np.zeros((2, 4))})
    assert names[:2] == ["v19", "v18"], "a quarter of the memory is for these"
    rest = sorted(int(name[1:]) for name in names[2:])
    assert len(rest) == 6
    assert rest[0] < 4
    assert rest[-1] > 12


def test_a_value_that_does_not_fit_is_passed_over_for_the_next_that_does(monkeypatch):
    wide = """(float[2,4] x) => (float[2,4] y) <int64[2] many = {50, 1}> {
        a = Abs(x) b = Tile(a, many) c = Abs(b) d = ReduceMax<keepdims = 0, axes = [0]>(c) e = Abs(d) y = Add(e, x) }"""
    monkeypatch.setattr(common_values, "_MEMORY", 64)
    assert values_to_record(net(wide), net(wide), {"x": np.zeros((2, 4))}) == ["e", "d"]


def test_the_size_of_a_value_is_that_of_its_elements():
    text = """(float[2,4] x) => (float[2,4] y) { h = Cast<to = 10>(x) d = Cast<to = 11>(x) b = Cast<to = 9>(x)
        i = Cast<to = 2>(x) s = Cast<to = 8>(x) y = Abs(x) }"""
    sizes = ValueTypes(net(text), {"x": np.zeros((2, 4), np.float32)}).sizes
    assert sizes == {"h": 16, "d": 64, "b": 8, "i": 8, "s": 64}


def test_sizes_are_unknown_where_the_inference_raises_whatever_it_does(monkeypatch):
    """onnx 1.23 raises ValueError for a branch whose output has an empty type."""

    def refuse(*args, **kwargs):
        raise ValueError("Invalid tensor data type 0.")

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", refuse)
    assert ValueTypes(net("(float[2] x) => (float[2] y) { y = Abs(x) }"), {}).sizes == {}
    relu = "(float[2] x) => (float[2] y) { a = Abs(x) y = Relu(a) }"
    check(relu, relu, Kind.VERIFIED, exact=relu)


def test_whether_all_names_are_kept():
    more = STEPS.replace("y = Tanh(d)", "z = Neg(d) s = Neg(z) y = Tanh(s)")
    assert keeps_all_names(net(STEPS), net(more))
    assert not keeps_all_names(net(more), net(STEPS))


def test_models_are_cut_at_floats_that_depend_on_inputs_in_order():
    chain = net(
        "(float[2] x) => (float[2] y) { a = Abs(x) i = Cast<to=7>(a) b = Cast<to=1>(i) c = Add(b, a) y = Neg(c) }"
    )
    assert common_cuts(chain, chain, ValueTypes(chain, {})) == ["a", "b", "c", "y"]
    constant = net("(float[2] x) => (float[2] y) <float[2] k = {1, 2}> { d = Neg(k) y = Add(x, d) }")
    assert common_cuts(constant, constant, ValueTypes(constant, {})) == ["y"]
    assert common_cuts(chain, constant, ValueTypes(chain, {})) == ["y"]
