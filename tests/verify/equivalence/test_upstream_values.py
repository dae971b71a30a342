"""Upstream of outputs that do not vary: the nearest values that do are compared, whatever their names."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify import Kind
from onnx_migrate.verify.equivalence.upstream_values import expose_inner_values
from tests.verify.harness import check, net, runnable, verdict

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
        ["output 'y'", "'a', from which the original", "'a2', from which the result"],
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
    found = check(before, net(other, zero=0.0), Kind.UNVERIFIED, ["cannot be paired", "--input-data"])
    assert "weak proof: output 'y'" in found.notes[-1]
