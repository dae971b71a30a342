"""What counts as equal, within a tolerance and bit for bit; how large a difference is allowed."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare import arrays
from onnx_migrate.verify.compare.comparison import (
    Difference,
    Observed,
    Tolerance,
    allowance,
    bit_difference,
    coarsest_eps,
    compare,
    finite_parts,
    is_quantized,
)
from tests.verify.harness import ULP, net

F32 = np.dtype(np.float32)


def test_the_allowance_is_8_eps_of_the_scale_without_noise():
    assert allowance(Tolerance(), 2.0, 0.0, F32) == 8 * ULP * 2.0
    assert allowance(Tolerance(), 2.0, 0.0, np.dtype(np.float16)) == 8 * 2.0**-10 * 2.0


def test_two_steps_are_allowed_below_the_least_normal_number():
    step = 2.0**-24
    assert allowance(Tolerance(), 2 * step, 0.0, np.dtype(np.float16)) == 2 * step
    a = np.array([2 * step, step, 0], np.float16)
    assert not compare("y", a, a + np.float16(step), Tolerance()).problem
    assert "differ" in compare("y", a, a + np.float16(3 * step), Tolerance()).problem


def test_noise_raises_it_tenfold_up_to_a_hundredth_of_the_scale():
    assert allowance(Tolerance(), 1.0, 1e-4, F32) == pytest.approx(1e-3)
    assert allowance(Tolerance(), 1.0, 0.5, F32) == 1e-2
    assert allowance(Tolerance(), 1.0, float("inf"), F32) == 1e-2


def test_eps_is_that_of_the_coarsest_type_in_the_model():
    assert allowance(Tolerance(eps=2.0**-10), 1.0, 0.0, F32) == 8 * 2.0**-10
    plain = "(float[4] x) => (float[4] y) { y = Relu(x) }"
    half = "(float[4] x) => (float[4] y) { h = Cast<to=10>(x) y = Cast<to=1>(h) }"
    inner = """(float[4] x, bool c) => (float[4] y) { y = If(c) <
        then_branch = t () => (float[4] a) { h = Cast<to=16>(x) a = Cast<to=1>(h) },
        else_branch = e () => (float[4] b) { b = Identity(x) }> }"""
    assert coarsest_eps(net(plain)) == ULP
    assert coarsest_eps(net(half)) == 2.0**-10
    assert coarsest_eps(net(inner)) == 2.0**-7, "bfloat16 in a branch"
    assert coarsest_eps(net(plain.replace("float", "double"))) == 2.0**-52
    assert coarsest_eps(net("(int64[4] x) => (int64[4] y) { y = Abs(x) }")) == 0


def test_a_model_that_quantizes_is_found():
    text = "(float[4] x) => (uint8[4] y) <float s = {0.5}, uint8 z = {0}> { y = QuantizeLinear(x, s, z) }"
    assert is_quantized(net(text))
    assert not is_quantized(net("(float[4] x) => (float[4] y) { y = Relu(x) }"))


X = np.linspace(-1, 1, 101, dtype=np.float32)


def problem(before, after, noise=0.0, scale=0.0, **tolerance):
    return compare("y", before, after, Tolerance(**tolerance), Observed(noise, scale=scale)).problem


def test_the_same_bits_are_identical():
    assert compare("y", X, X.copy(), Tolerance()).identical


def test_rounding_passes_and_is_counted():
    entry = compare("y", X, np.nextafter(X, np.float32(2)), Tolerance())
    assert entry.agrees
    assert not entry.identical
    assert entry.differing == X.size


def test_a_difference_beyond_rounding_is_found():
    after = X.copy()
    after[3] += 2e-6
    assert "1 of 101 elements" in problem(X, after)
    assert "difference is 2.03e-06, allowed is 9.54e-07" in problem(X, after)
    assert problem(X, after, noise=1e-6) == "", "ten times the noise is allowed"
    assert problem(X, after, atol=1e-5) == ""


def test_noise_allows_at_most_a_hundredth_of_the_scale():
    assert problem(X, X + np.float32(0.05), noise=1.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_must_be_at_the_same_positions(value):
    before, after = X.copy(), X.copy()
    before[0] = after[1] = value
    assert "different positions" in problem(before, after)
    assert problem(before, before.copy()) == ""


def test_infinities_keep_their_sign():
    before, after = X.copy(), X.copy()
    before[0], after[0] = np.inf, -np.inf
    assert "different positions" in problem(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (X, X.reshape(1, -1)),
        (X, X.astype(np.float64)),
        (np.arange(3), np.array([0, 1, 3])),
        (np.array([True, False]), np.array([True, True])),
        (np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object)),
        (X, None),
    ],
)
def test_shape_type_and_discrete_values_are_exact(before, after):
    assert problem(before, after)
    assert problem(before, before) == ""


def test_a_quantum_is_allowed_only_to_quantized_models():
    before = np.array([3, 250], dtype=np.uint8)
    after = np.array([3, 251], dtype=np.uint8)
    assert problem(before, after)
    assert problem(before, after, quantum=True) == ""
    assert problem(before, before + np.uint8(2), quantum=True)


def test_a_saturated_output_is_compared_at_its_scale_over_all_feeds():
    before, after = np.zeros(4, np.float32), np.full(4, 6e-8, np.float32)
    assert problem(before, after)
    assert problem(before, after, scale=1.0) == ""


def test_the_allowance_follows_the_eps_of_the_type():
    half = X.astype(np.float16)
    assert problem(half, np.nextafter(half, np.float16(2))) == ""
    assert problem(half, half + np.float16(0.02))


def test_a_bit_difference_is_described_with_its_size():
    assert bit_difference("y", X, X.copy()) == ""
    after = X.copy()
    after[3] = np.nextafter(after[3], np.float32(2))
    assert (
        bit_difference("y", X, after)
        == "'y' differs in 1 of 101 elements, by up to 5.96e-08 (5.96e-08 of the largest magnitude)"
    )
    assert "'y' differs in 1 of 1" in bit_difference("y", np.array([0.0]), np.array([-0.0])), (
        "bits, not values"
    )
    assert "shape" in bit_difference("y", X, X[None])
    assert "'y[1]'" in bit_difference("y", [X, X], [X, after])
    assert "another number of elements" in bit_difference("y", [X, X], [X])


def test_a_relative_difference_is_that_to_the_largest_of_all_feeds():
    zeros = np.zeros(4, np.float32)
    after = zeros + np.float32(0.5)
    assert compare("y", zeros, after, Tolerance(), Observed(scale=2.0)).largest_relative == 0.25
    assert compare("y", zeros, after, Tolerance()).largest_relative == 1.0


A = np.float32([1, -3, np.nan, np.inf, 2])


@pytest.fixture(params=[1, 2, 1 << 20])
def block(request, monkeypatch):
    monkeypatch.setattr(arrays, "_BLOCK", request.param)


@pytest.mark.usefixtures("block")
def test_elements_that_are_finite_in_both_are_measured():
    found = Difference.between(A, np.float32([1, -7, np.nan, np.inf, 5]))
    assert (found.scale, found.scale_after, found.largest, found.elements) == (3, 7, 4, 3)
    assert found.typical == pytest.approx((25 / 3) ** 0.5)
    assert found.problem == ""
    parts = [np.concatenate(each) for each in zip(*finite_parts(A, A), strict=True)]
    assert [part.tolist() for part in parts] == [[1, 3, 2], [0, 0, 0]]


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize(
    ("other", "problem"),
    [
        ([1, -3, 0, np.inf, 2], "NaN"),
        ([1, -3, np.nan, -np.inf, 2], "infinities"),
        ([1, np.inf, np.nan, np.inf, 2], "infinities"),
        ([np.inf, -3, np.nan, np.inf, np.nan], "NaN"),
    ],
)
def test_nan_and_infinities_must_be_at_the_same_positions(other, problem):
    assert Difference.between(A, np.float32(other)).problem.startswith(problem)


def test_nothing_differs_in_empty_arrays():
    assert Difference.between(A[:0], A[:0]) == Difference()


@pytest.mark.parametrize(
    ("one", "other", "largest", "typical"),
    [
        (A[:4], np.float32([2, -3, 7, 1]), 1, 0.5**0.5),
        (A[:4], np.float32([4, 1, 7, 1]), 4, (25 / 2) ** 0.5),
        (A[:4], np.float32([2, -3, 7]), np.inf, 0),
        (A[:4], np.float64([2, -3, 7, 1]), np.inf, 0),
        (np.array([1, 2]), np.array([1, 2]), 0, 0),
        (np.array([1, 2]), np.array([1, 3]), np.inf, 0),
    ],
    ids=["one differs", "two differ", "another shape", "another type", "equal integers", "other integers"],
)
def test_the_largest_and_the_typical_difference(one, other, largest, typical):
    found = Difference.between(one, other)
    assert (found.largest, found.typical) == (largest, pytest.approx(typical))
