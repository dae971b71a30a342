"""Which inner values are compared: those that both have by name, and those upstream of outputs that do not vary."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.equivalence import common_values
from onnx_migrate.verify.equivalence.common_values import (
    ValueTypes,
    common_cuts,
    keeps_all_names,
    values_to_record,
)
from onnx_migrate.verify.equivalence.upstream_values import expose_inner_values
from tests.verify.harness import check, net, runnable, verdict

STEPS = "(float[N,4] x) => (float[N,4] y) { a = Mul(x, w) b = Exp(a) c = Add(b, k) d = Relu(c) y = Tanh(d) }"


def test_what_is_recorded_with_the_outputs_is_nearest_to_them_then_spread_over_the_model(monkeypatch):
    chain = " ".join(f"v{index + 1} = Abs(v{index})" for index in range(19))
    long = net(f"(float[2,4] x) => (float[2,4] y) {{ v0 = Abs(x) {chain} y = Abs(v19) }}")
    monkeypatch.setattr(common_values, "_MEMORY", 8 * 2 * 4 * 4)  # eight values of two times four numbers
    names = values_to_record(long, long, {"x": (2, 4)})
    assert names[:2] == ["v19", "v18"], "a quarter of the memory is for these"
    rest = sorted(int(name[1:]) for name in names[2:])
    assert len(rest) == 6
    assert rest[0] < 4
    assert rest[-1] > 12


def test_a_value_that_does_not_fit_is_passed_over_for_the_next_that_does(monkeypatch):
    wide = """(float[2,4] x) => (float[2,4] y) <int64[2] many = {50, 1}> {
        a = Abs(x) b = Tile(a, many) c = Abs(b) d = ReduceMax<keepdims = 0, axes = [0]>(c) e = Abs(d) y = Add(e, x) }"""
    monkeypatch.setattr(common_values, "_MEMORY", 64)
    assert values_to_record(net(wide), net(wide), {"x": (2, 4)}) == ["e", "d"]


def test_the_size_of_a_value_is_that_of_its_elements():
    text = """(float[2,4] x) => (float[2,4] y) { h = Cast<to = 10>(x) d = Cast<to = 11>(x) b = Cast<to = 9>(x)
        i = Cast<to = 2>(x) s = Cast<to = 8>(x) y = Abs(x) }"""
    sizes = ValueTypes(net(text), {"x": (2, 4)}).sizes
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


X = [np.linspace(-1, 1, 4, dtype=np.float32)[None], np.linspace(3, -2, 4, dtype=np.float32)[None]]


def look(text, outputs=("y",), **tensors):
    inner = expose_inner_values(runnable(text, **tensors), outputs, [{"x": x} for x in X])
    return inner.found.names, inner.found.incomplete


FLAT = "(float[1,4] x) => (float[1,4] y) { BODY z = Sub(a, a) y = Softmax(z) }"


def test_the_nearest_varying_values_are_found_in_the_order_of_the_traversal():
    assert look(FLAT.replace("BODY", "a = Relu(x)")) == ({"y": ("a",)}, set())
    two = "(float[1,4] x) => (float[1,4] y) { a = Relu(x) b = Abs(a) p = Mul(b, zero) q = Mul(a, zero) y = Add(p, q) }"
    assert look(two, zero=0.0) == ({"y": ("b", "a")}, set())


def test_a_long_path_of_constant_values_is_followed_to_its_end():
    chain = " ".join(f"f{n + 1} = Identity(f{n})" for n in range(40))
    text = f"(float[1,4] x) => (float[1,4] y) {{ a = Relu(x) f0 = Sub(a, a) {chain} y = Abs(f40) }}"
    assert look(text) == ({"y": ("a",)}, set())


def test_a_path_without_a_varying_value_is_incomplete():
    assert look("(float[1,4] x) => (float[1,4] y) { y = Mul(x, zero) }", zero=0.0) == ({}, {"y"})


def test_an_output_that_depends_on_shapes_only_has_no_inner_values():
    text = "(float[1,4] x) => (float[A,B] y) { a = Relu(x) s = Shape(a) y = ConstantOfShape(s) }"
    assert look(text) == ({}, set())
    whole = text.replace("y) {", "y, float[1,4] z) {").replace("y = C", "z = Abs(x) y = C")
    assert check(whole, whole, Kind.VERIFIED).notes == ()


def test_another_output_upstream_is_compared_as_an_output():
    text = FLAT.replace("y) {", "y, float[1,4] a) {").replace("BODY", "a = Relu(x)")
    assert look(text) == ({}, set())
    check(text, text, Kind.VERIFIED)
    check(text, text.replace("Relu", "Abs"), Kind.DIFFERS, "output 'a':")


W, GAIN, BIAS = np.eye(4) * 1.5 + 0.1, np.array([1.0, 2, -1, 0.5]), np.array([0.3, -0.2, 0.1, 0])
PLAIN = "h = Relu(x) c = MatMul(h, w) b = Mul(c, gain) a = Add(b, bias)"
FOLDED = "h = Relu(x) c = MatMul(h, w) a2 = Add(c, bias)"
"""As a simplifier folds it: the name `c` is now that of another value, which was `b`."""
TENSORS = {"gain": GAIN, "bias": BIAS}


def constant(body, last, **tensors):
    return net(
        f"(float[1,4] x) => (float[1,4] y) {{ {body} z = Sub({last}, {last}) y = Softmax(z) }}", **tensors
    )


def test_a_name_that_a_simplifier_reuses_for_another_value_is_no_false_alarm():
    before = constant(PLAIN, "a", w=W, **TENSORS)
    found = check(before, constant(FOLDED, "a2", w=W * GAIN, bias=BIAS), Kind.VERIFIED)
    assert {entry.output for entry in found.comparisons} == {"y", "a (inner)"}


@pytest.mark.parametrize("operator", ["Identity", "Abs"])
def test_a_fault_that_constant_outputs_hide_is_never_verified(operator):
    before = constant(PLAIN, "a", w=W, **TENSORS)
    fault = PLAIN.replace("Relu", operator)
    check(before, constant(fault, "a", w=W, **TENSORS), Kind.DIFFERS, "'a' differs")
    folded = constant(FOLDED.replace("Relu", operator), "a2", w=W * GAIN, bias=BIAS)
    check(
        before,
        folded,
        Kind.UNVERIFIED,
        ["output 'y'", "The original computes it from 'a', and the result from 'a2'"],
    )


def test_bit_identity_is_required_upstream_of_constant_outputs_too():
    before = constant(PLAIN, "a", w=W, **TENSORS)
    off = constant(PLAIN, "a", w=W, gain=GAIN, bias=np.nextafter(np.float32(BIAS), np.float32(9)))
    assert verdict(before, before, exact=before).exact
    check(before, before, Kind.DIFFERS, "without optimisation 'a' differs", exact=off)
    check(before, off, Kind.VERIFIED)


def test_inner_values_that_cannot_be_paired_leave_the_verdict_open():
    before = constant("a = Relu(x)", "a")
    other = """(float[1,4] x) => (float[1,4] y) { a = Relu(x) b = Abs(x)
        z = Mul(a, zero) v = Mul(b, zero) s = Add(z, v) y = Softmax(s) }"""
    found = check(before, net(other, zero=0.0), Kind.UNVERIFIED, ["do not correspond", "--input-data"])
    assert "weak proof: output 'y'" in found.notes[-1]
