"""Each rule of the kernel, just inside its limit and just outside."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.kernel import Explanation, Measurement, Observation, Tolerance, judge, limits
from onnx_migrate.verify.kernel.rules import beyond_one_node, worse_than
from tests.support.skips import Elsewhere, import_or_skip

X = np.linspace(-1, 1, 1001, dtype=np.float32)
ULP = 2.0**-23


def observed(before, after, *, tolerance=None, **measured):
    return judge(Observation("y", before, after, tolerance or Tolerance(), Measurement(**measured)))


def off(array, by, at=3):
    after = array.copy()
    after[at] += after.dtype.type(by)
    return after


# Rule 2: an allowance is measured on the original, and has a ceiling.


def test_equal_bits_are_identical():
    assert observed(X, X.copy()).identical


@pytest.mark.parametrize(
    ("dtype", "ulps"), [(np.float64, 8), (np.float32, 8), (np.float16, 4)], ids=lambda value: str(value)
)
def test_kernels_may_differ_by_some_units_in_the_last_place_of_the_largest(dtype, ulps):
    array, eps = X.astype(dtype), float(np.finfo(dtype).eps)
    inside, outside = (
        observed(array, off(array, 0.9 * ulps * eps, 500)),
        observed(array, off(array, 1.5 * ulps * eps, 500)),
    )
    assert inside.agrees
    assert not inside.identical
    assert "1 of 1001 elements differ" in outside.problem


def test_bfloat16_and_floats_of_8_bits_have_limits_of_their_own():
    ml_dtypes = import_or_skip("ml_dtypes", Elsewhere.NEWEST)
    for kind, inside, outside in ((ml_dtypes.bfloat16, 2**-7, 2**-5), (ml_dtypes.float8_e4m3fn, 0.125, 0.5)):
        ones = np.ones(4, kind)
        assert observed(ones, off(ones, inside)).agrees
        assert observed(ones, off(ones, outside)).problem


def test_a_few_steps_below_the_least_normal_number_are_allowed():
    step = 2.0**-24
    tiny = np.array([2 * step, step, 0], np.float16)
    assert observed(tiny, tiny + np.float16(2 * step)).agrees
    assert observed(tiny, tiny + np.float16(3 * step)).problem


@pytest.mark.parametrize(("noise", "times", "agrees"), [(1e-4, 9, True), (1e-4, 11, False), (1e-6, 9, True)])
def test_ten_times_the_noise_of_the_original_is_allowed(noise, times, agrees):
    assert observed(X, off(X, noise * times), largest=noise).agrees is agrees


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_noise_beyond_the_ceiling_leaves_a_larger_difference_open(dtype):
    ceiling = {"float16": 2e-2, "bfloat16": 5e-2}.get(dtype, 1e-2)
    if dtype == "bfloat16":
        dtype = import_or_skip("ml_dtypes", Elsewhere.NEWEST).bfloat16
    ones = np.ones(8, dtype)
    below, above = (observed(ones, off(ones, share * ceiling), largest=ceiling) for share in (0.8, 1.8))
    assert below.agrees
    assert not below.doubt
    assert above.agrees
    assert "would look the same as rounding" in above.doubt
    assert not above.identical
    assert observed(ones, off(ones, 2.5 * ceiling), largest=ceiling).problem, (
        "more than twice what a run showed"
    )


def test_one_outlier_does_not_excuse_all_elements():
    measured = {"largest": 1e-3, "typical": 1e-6}
    assert observed(X, off(X, 5e-3), **{**measured, "typical": 1e-4}).agrees
    assert "in the root mean square" in observed(X, X + np.float32(5e-4), **measured).problem


def test_a_saturated_output_is_judged_relative_to_other_inputs_only_if_it_never_exceeds_1():
    zeros, after = np.zeros(4, np.float32), np.full(4, 6e-8, np.float32)
    assert observed(zeros, after).problem
    assert observed(zeros, after, scale=1.0).agrees
    assert observed(zeros, after, scale=2.0).problem
    small = np.full(4, 2e-3, np.float32)
    assert observed(small, small + np.float32(6e-8), scale=1.0).problem, "a thousandth of 1 is not small"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinities_must_be_at_the_same_positions(value):
    before, after = X.copy(), X.copy()
    before[0] = after[1] = value
    assert "different positions" in observed(before, after).problem
    assert observed(before, before.copy()).identical
    assert "different positions" in observed(np.float32([np.inf, 1]), np.float32([-np.inf, 1])).problem


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (X, X.reshape(1, -1)),
        (X, X.astype(np.float64)),
        (X, None),
        (None, X),
        (np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object)),
    ],
    ids=["shape", "type", "absent", "present", "texts"],
)
def test_shapes_types_and_presence_are_exact(before, after):
    assert observed(before, after).problem
    assert observed(before, before).agrees


def test_the_limit_of_the_user_holds_for_each_element():
    assert observed(X, off(X, 9e-4), tolerance=Tolerance(atol=1e-3)).agrees
    assert observed(X, off(X, 11e-4), tolerance=Tolerance(atol=1e-3)).problem
    assert observed(X, X * np.float32(1.0009), tolerance=Tolerance(rtol=1e-3)).agrees
    assert observed(X, X * np.float32(1.0011), tolerance=Tolerance(rtol=1e-3)).problem


def test_a_relative_difference_is_that_to_the_largest_on_all_inputs():
    zeros = np.zeros(4, np.float32)
    assert observed(zeros, zeros + np.float32(0.5), scale=2.0).largest_relative == 0.25
    assert observed(zeros, zeros + np.float32(0.5)).largest_relative == 1.0


# Rule 3: discrete elements are equal, unless rounding decides them in the original.

IDS = np.arange(1000)


def mask(*at):
    return np.isin(IDS, at)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, bool])
def test_discrete_elements_are_equal(dtype):
    values = (IDS % 2).astype(dtype)
    after = values.copy()
    after[5] = not after[5]
    assert "1 of 1000 elements is not equal" in observed(values, after).problem


def test_an_element_that_rounding_changes_in_the_original_may_differ_and_others_may_not():
    changed = np.where(mask(3, 9), 7777, IDS)
    assert observed(IDS, changed, unstable=mask(3, 9, 11)).agrees
    assert not observed(IDS, changed, unstable=mask(3, 9, 11)).doubt
    assert observed(IDS, changed, unstable=mask(3)).doubt, "rounding may change others too: not determined"
    assert observed(IDS, np.where(IDS < 500, 7777, IDS), unstable=mask(3)).problem


@pytest.mark.parametrize(("count", "determined"), [(10, True), (11, False), (90, False)])
def test_rounding_may_decide_a_hundredth_of_the_elements(count, determined):
    unstable = mask(*range(count))
    entry = observed(IDS, np.where(unstable, 7777, IDS), unstable=unstable)
    assert entry.agrees
    assert (not entry.doubt) is determined


def test_one_element_may_be_decided_however_few_there_are():
    pair = np.array([1, 2])
    assert not observed(pair, np.array([1, 3]), unstable=np.array([False, True])).doubt
    assert observed(pair, np.array([4, 3]), unstable=np.array([True, True])).doubt


def test_a_step_is_allowed_to_a_hundredth_of_the_bytes_of_a_quantised_model():
    quantised, bytes_ = Tolerance(quantum=True), np.full(1000, 7, np.uint8)
    after = bytes_ + mask(*range(10)).astype(np.uint8)
    assert observed(bytes_, after).problem
    assert observed(bytes_, after, tolerance=quantised).agrees
    assert observed(bytes_, bytes_ + mask(*range(11)).astype(np.uint8), tolerance=quantised).problem
    assert observed(bytes_, bytes_ + np.uint8(1), tolerance=quantised).problem, (
        "a zero point that is off by one"
    )
    assert observed(bytes_, bytes_ + 2 * mask(1).astype(np.uint8), tolerance=quantised).problem
    assert observed(IDS, IDS + mask(1), tolerance=quantised).problem, "no bytes"


def test_more_bytes_may_move_if_the_original_itself_moves_half_as_many():
    quantised, bytes_ = Tolerance(quantum=True), np.full(1000, 7, np.uint8)
    unstable = mask(*range(900, 1000))
    for count, agrees in ((50, True), (51, False), (400, False)):
        after = bytes_ + mask(*range(count)).astype(np.uint8)
        assert observed(bytes_, after, tolerance=quantised, unstable=unstable).agrees is agrees


# Rule 4: an explanation counts for what was computed again.


def test_an_explained_difference_may_be_twice_as_large():
    explanation = Explanation(1e-3, 1)
    assert observed(X, off(X, 1.9e-3), explanation=explanation).agrees
    assert observed(X, off(X, 2.1e-3), explanation=explanation).problem
    assert observed(X, off(X, 0.05), explanation=Explanation(0.05, 1)).doubt, "beyond the ceiling"


def test_explained_discrete_elements_are_a_hundredth_at_most():
    for count, doubt in ((10, False), (11, True)):
        entry = observed(IDS, np.where(mask(*range(count)), 7777, IDS), explanation=Explanation(0.0, count))
        assert entry.agrees
        assert bool(entry.doubt) is doubt
    assert observed(IDS, IDS + 1, explanation=Explanation(0.0, 5)).problem


@pytest.mark.parametrize(("ulps", "agrees"), [(7, True), (12, False)])
def test_one_node_may_differ_by_some_units_of_the_largest(ulps, agrees):
    assert (beyond_one_node(X, off(X, ulps * ULP, 500), 8) == "") is agrees


@pytest.mark.parametrize(("changed", "agrees"), [(10, True), (11, False)])
def test_a_node_may_round_a_hundredth_of_float16_to_the_neighbour(changed, agrees):
    half = X.astype(np.float16)
    other = half.copy()
    other[:changed] = np.nextafter(other[:changed], np.float16(0))
    assert (beyond_one_node(half, other, 8) == "") is agrees
    assert "1 of 1001 elements differ" in beyond_one_node(half, off(half, 0.01, 0), 8)


def test_one_node_may_compute_zeros_of_either_sign():
    zeros, half = np.zeros(100, np.float16), np.zeros(100, np.float16)
    half[2:] = 1
    assert beyond_one_node(zeros, -zeros, 8) == ""
    assert beyond_one_node(half, -half, 8)
    assert beyond_one_node(half, half + (half == 0) * np.float16(1e-3), 8)


def test_one_node_computes_the_same_integers_shapes_and_infinities():
    steps = np.arange(9, dtype=np.int8)
    assert "1 of 9" in beyond_one_node(steps, np.array([*range(8), 9], np.int8), 8)
    assert "became" in beyond_one_node(X, X[:5], 8)
    assert "infinities" in beyond_one_node(off(X, np.inf), X, 8)


# Rule 6: undefined elements are left out and counted.


def test_undefined_elements_are_left_out_and_counted():
    entry = observed(IDS, np.where(mask(1, 2), 7777, IDS), undefined=mask(1, 2))
    assert entry.identical
    assert entry.left_out == 2
    assert observed(IDS, np.where(mask(1, 3), 7777, IDS), undefined=mask(1, 2)).problem


def test_floats_that_are_finite_in_one_run_of_the_original_only_are_left_out():
    before, after = off(X, np.nan, 0), off(X, 1.0, 0)
    assert observed(before, after, unstable=X[0] == X).agrees
    assert observed(before, after, unstable=X[1] == X).problem


# Rule 8: simplification does not make a result worse.


@pytest.mark.parametrize(("by", "agrees"), [(0.9e-5, True), (1.2e-5, False), (0.019, False)])
def test_simplification_may_move_float32_by_a_hundred_thousandth(by, agrees):
    assert (worse_than(X, X, off(X, by)) == "") is agrees


@pytest.mark.parametrize(("ulps", "agrees"), [(3, True), (6, False)])
def test_simplification_may_move_other_floats_by_4_units(ulps, agrees):
    double = X.astype(np.float64)
    assert (worse_than(double, double, off(double, ulps * 2.0**-52, 500)) == "") is agrees
    coarse = worse_than(X, X, off(X, ulps * 2.0**-10, 500), eps=2.0**-10)
    assert (coarse == "") is agrees, "the user asked for float16"


@pytest.mark.parametrize(("count", "agrees"), [(10, True), (11, False)])
def test_simplification_may_move_a_hundredth_of_float16_to_the_neighbour(count, agrees):
    half = X.astype(np.float16)
    moved = half.copy()
    moved[:count] = np.nextafter(moved[:count], np.float16(0))
    assert (worse_than(half, half, moved) == "") is agrees


def test_simplification_is_judged_beside_the_result_without_it():
    moved = off(X, 1e-3)
    assert worse_than(X, moved, off(X, 1.005e-3)) == ""
    assert "0.11 % of its largest value, and by 0.1 % without" in worse_than(X, moved, off(X, 1.1e-3))
    assert "NaN" in worse_than(X, moved, off(X, np.nan))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_two_steps_of_the_smallest_number_are_allowed_beside_zeros(dtype):
    zeros, step = np.zeros(4, dtype), np.finfo(dtype).smallest_subnormal
    assert observed(zeros, off(zeros, 2 * step)).agrees
    assert observed(zeros, off(zeros, 3 * step)).problem
    assert observed(zeros, zeros - 2 * step).allowed == 2 * step


def test_the_ceiling_of_floats_of_8_bits_is_a_quarter():
    ones = np.ones(4, import_or_skip("ml_dtypes", Elsewhere.NEWEST).float8_e4m3fn)
    assert observed(ones, off(ones, 0.25), largest=1.0).allowed == 0.25


def test_one_node_may_round_8_units_if_bits_are_claimed_and_64_if_not():
    for ulps, most in ((limits.KERNEL_ULPS, 8), (limits.UNCLAIMED_ULPS, 64)):
        assert beyond_one_node(X, off(X, 0.9 * most * ULP, 500), ulps) == ""
        assert beyond_one_node(X, off(X, 1.5 * most * ULP, 500), ulps)


def test_an_output_below_a_thousandth_of_1_is_saturated():
    small = np.full(4, 9e-4, np.float32)
    assert observed(small, small + np.float32(6e-8), scale=1.0).agrees
    small = np.full(4, 1.1e-3, np.float32)
    assert observed(small, small + np.float32(6e-8), scale=1.0).problem


def test_two_steps_of_bfloat16_are_allowed_beside_zeros():
    kind = import_or_skip("ml_dtypes", Elsewhere.NEWEST).bfloat16
    zeros, step = np.zeros(4, kind), 2.0**-133
    assert observed(zeros, off(zeros, 2 * step)).allowed == 2 * step
