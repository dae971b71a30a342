"""Outputs that never vary: what stands before them is compared, whatever its name."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnx_migrate.verify import Kind, Runnable, verify
from onnx_migrate.verify.equivalence.inner_values import expose_inner_values

HEAD = '<ir_version: 8, opset_import: ["" : 17]> g '
X = [np.linspace(-1, 1, 4, dtype=np.float32)[None], np.linspace(3, -2, 4, dtype=np.float32)[None]]


def runnable(text, **tensors):
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.initializer.extend(numpy_helper.from_array(np.float32(v), k) for k, v in tensors.items())
    return Runnable(structure=model.SerializeToString())


def judge(before, after, **options):
    return verify(before, after, isolated=False, **options)


def look(text, outputs=("y",), **tensors):
    inner = expose_inner_values(runnable(text, **tensors), outputs, [{"x": x} for x in X])
    return inner.nearest, inner.incomplete


FLAT = "(float[1,4] x) => (float[1,4] y) { BODY z = Sub(a, a) y = Softmax(z) }"


def test_the_nearest_varying_values_are_found_in_the_order_of_the_walk():
    assert look(FLAT.replace("BODY", "a = Relu(x)")) == ({"y": ("a",)}, set())
    two = "(float[1,4] x) => (float[1,4] y) { a = Relu(x) b = Abs(a) p = Mul(b, zero) q = Mul(a, zero) y = Add(p, q) }"
    assert look(two, zero=0) == ({"y": ("b", "a")}, set())


def test_a_long_flat_way_is_walked_to_its_end():
    chain = " ".join(f"f{n + 1} = Identity(f{n})" for n in range(40))
    text = f"(float[1,4] x) => (float[1,4] y) {{ a = Relu(x) f0 = Sub(a, a) {chain} y = Abs(f40) }}"
    assert look(text) == ({"y": ("a",)}, set())


def test_a_way_that_ends_at_the_input_is_lost():
    assert look("(float[1,4] x) => (float[1,4] y) { y = Mul(x, zero) }", zero=0) == ({}, {"y"})


def test_what_follows_from_shapes_alone_has_nothing_before_it():
    text = "(float[1,4] x) => (float[A,B] y) { a = Relu(x) s = Shape(a) y = ConstantOfShape(s) }"
    assert look(text) == ({}, set())
    whole = text.replace("y) {", "y, float[1,4] z) {").replace("y = C", "z = Abs(x) y = C")
    verdict = judge(runnable(whole), runnable(whole))
    assert (verdict.kind, verdict.notes) == (Kind.VERIFIED, ())


def test_another_output_before_a_flat_one_is_compared_as_it_is():
    text = FLAT.replace("y) {", "y, float[1,4] a) {").replace("BODY", "a = Relu(x)")
    assert look(text) == ({}, set())
    assert judge(runnable(text), runnable(text)).kind is Kind.VERIFIED
    assert judge(runnable(text), runnable(text.replace("Relu", "Abs"))).reason.startswith("output 'a'")


W, GAIN, BIAS = np.eye(4) * 1.5 + 0.1, np.array([1.0, 2, -1, 0.5]), np.array([0.3, -0.2, 0.1, 0])
PLAIN = "h = Relu(x) c = MatMul(h, w) b = Mul(c, gain) a = Add(b, bias)"
# As a simplifier folds it: `c` is now what `b` was, and so much the name is worth.
FOLDED = "h = Relu(x) c = MatMul(h, w) a2 = Add(c, bias)"
TENSORS = {"gain": GAIN, "bias": BIAS}


def flat(body, last, **tensors):
    text = f"(float[1,4] x) => (float[1,4] y) {{ {body} z = Sub({last}, {last}) y = Softmax(z) }}"
    return runnable(text, **tensors)


def test_a_name_that_came_to_mean_another_value_is_no_false_alarm():
    before = flat(PLAIN, "a", w=W, **TENSORS)
    after = flat(FOLDED, "a2", w=W * GAIN, bias=BIAS)
    verdict = judge(before, after)
    assert verdict.kind is Kind.VERIFIED, verdict.reason
    assert {entry.output for entry in verdict.comparisons} == {"y", "a (inner)"}


@pytest.mark.parametrize(("old", "new"), [("Relu", "Identity"), ("Relu", "Abs")])
@pytest.mark.parametrize("folded", [True, False])
def test_a_fault_that_only_flat_outputs_hide_is_never_verified(old, new, folded):
    before = flat(PLAIN, "a", w=W, **TENSORS)
    if folded:
        verdict = judge(before, flat(FOLDED.replace(old, new), "a2", w=W * GAIN, bias=BIAS))
        assert (verdict.kind, "'a (inner)' and 'a2'" in verdict.reason) == (Kind.UNVERIFIED, True)
    else:
        verdict = judge(before, flat(PLAIN.replace(old, new), "a", w=W, **TENSORS))
        assert (verdict.kind, "'a (inner)'" in verdict.reason) == (Kind.DIFFERS, True)


def test_exactness_is_held_before_flat_outputs_too():
    before = flat(PLAIN, "a", w=W, **TENSORS)
    off = flat(PLAIN, "a", w=W, gain=GAIN, bias=np.nextafter(np.float32(BIAS), np.float32(9)))
    assert judge(before, before, exact=before).exact
    verdict = judge(before, before, exact=off)
    assert verdict.kind is Kind.DIFFERS
    assert "bit-identity was claimed, but 'a'" in verdict.reason
    assert judge(before, off).kind is Kind.VERIFIED


def test_what_cannot_be_matched_is_unverified():
    before = flat("a = Relu(x)", "a")
    other = "(float[1,4] x) => (float[1,4] y) { a = Relu(x) b = Abs(x) z = Mul(a, zero) v = Mul(b, zero) s = Add(z, v) y = Softmax(s) }"  # noqa: E501
    verdict = judge(before, runnable(other, zero=0))
    assert (verdict.kind, "cannot be matched" in verdict.reason) == (Kind.UNVERIFIED, True)
