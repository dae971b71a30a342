"""The noise of the original: measured, accepted up to a limit, exceeded; what counts as a kernel's rounding."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare.comparison import Rounding, Tolerance
from onnx_migrate.verify.compare.noise import Noise, beyond_rounding, rounding_between, share_of_noise

X = np.linspace(-1, 1, 101, dtype=np.float32)


def problems(noise, after, index=0):
    return [entry.problem for entry in noise.compare("y", X, after, index, Tolerance()) if entry.problem]


def test_a_difference_beyond_ten_times_the_noise_is_reported_and_one_within_is_not():
    noise = Noise([{"y": X}, {"y": X}])
    off = X + np.float32(5e-6)
    assert problems(noise, off), "8 eps without noise"
    noise.observe(0, {"y": X + np.float32(1e-6)})
    assert problems(noise, off) == []
    assert problems(noise, off, index=1), "noise is that of its own feed"
    assert problems(noise, X + np.float32(5e-5))


def test_one_outlier_among_the_noise_does_not_excuse_all_elements():
    """The largest of millions of rounding errors is large; what most elements may differ by is not."""
    noise = Noise([{"y": X}])
    outlier = X.copy()
    outlier[7] += np.float32(4e-4)
    noise.observe(0, {"y": outlier})
    assert problems(noise, outlier) == []
    (problem,) = problems(noise, X + np.float32(1e-3))
    assert "in the root mean square" in problem


def test_the_largest_noise_that_was_observed_counts():
    noise = Noise([{"y": X}])
    noise.observe(0, {"y": X + np.float32(1e-5)})
    noise.observe(0, {"y": X})
    assert problems(noise, X + np.float32(5e-5)) == []


def test_a_run_of_the_original_itself_is_beyond_noise_above_a_hundredth_of_the_scale():
    noise = Noise([{"y": X, "z": X}])
    again = {"y": X + np.float32(0.005), "z": X + np.float32(0.05)}
    assert noise.outputs_beyond(Tolerance.ceiling, 0, again) == {"z"}
    assert noise.outputs_beyond(1e-3, 0, again) == {"y", "z"}


def test_an_output_with_an_unstable_shape_is_not_compared():
    noise = Noise([{"y": X}])
    noise.observe(0, {"y": X[:5]})
    assert noise.unstable_shapes == {"y"}
    assert noise.compare("y", X, X[:7], 0, Tolerance()) == []


def test_discrete_values_that_change_with_rounding_may_differ_in_a_hundredth_of_the_elements():
    before = np.arange(200)
    after = before.copy()
    after[:2] += 1
    noise = Noise([{"y": before}])
    assert noise.compare("y", before, after, 0, Tolerance())[0].problem
    noise.observe(0, {"y": before[::-1].copy()})
    assert not noise.compare("y", before, after, 0, Tolerance())[0].problem
    after[2] += 1
    assert noise.compare("y", before, after, 0, Tolerance())[0].problem


def test_a_sequence_of_another_length_is_a_problem():
    assert Noise([{"y": [X]}]).compare("y", [X], [X, X], 0, Tolerance())[0].problem


def test_discrete_values_that_change_throughout_on_every_feed_are_undetermined():
    ids = np.arange(200)
    noisy = np.where(ids < 30, 999, ids)
    noise = Noise([{"y": ids, "z": X}, {"y": ids, "z": X}])
    noise.observe(0, {"y": noisy, "z": -X})
    assert noise.undetermined() == {}, "the second feed determines it"
    noise.observe(1, {"y": noisy})
    assert noise.undetermined() == {"y": 0.15}


def test_a_proved_run_allows_twice_its_difference_beyond_the_ceiling():
    noise = Noise([{"y": X}])
    off = X + np.float32(0.03)
    assert problems(noise, off)
    noise.observe(0, {"y": X + np.float32(0.02)}, proved=True)
    assert problems(noise, off) == []
    assert problems(noise, X + np.float32(0.05))


def test_of_a_feed_that_ran_once_the_noise_is_assumed_in_proportion():
    noise = Noise([{"y": np.float32([1, 2, 4])}])
    noise.observe(0, {"y": np.float32([1, 2, 4.01])})
    noise.assume({"y": np.float32([10, 20, 40])})
    entry = noise.compare("y", np.float32([10, 20, 40]), np.float32([10, 20, 40.2]), 1, Tolerance())[0]
    assert entry.allowed == pytest.approx(0.4)
    assert not entry.problem
    assert noise.compare("y", np.float32([10, 20, 40]), np.float32([10, 20, 41]), 1, Tolerance())[0].problem


def test_the_scale_is_that_of_all_feeds_also_of_one_that_ran_once():
    noise = Noise([{"y": X}])
    off = X + np.float32(1e-3)
    noise.assume({"y": X * np.float32(10)})
    assert problems(noise, off), "a scale of 10 counts where that of the feed is below a thousandth of it"
    noise.assume({"y": X * np.float32(1e4)})
    noise.assume({"y": X})
    assert problems(noise, off) == []


WAVE = np.linspace(-1, 1, 201, dtype=np.float32)
UNIT = np.float32(2**-23)


def test_a_few_units_of_the_largest_magnitude_are_rounding_and_more_are_not():
    assert beyond_rounding(WAVE, WAVE, 8) == ""
    assert beyond_rounding(WAVE, WAVE + 4 * UNIT, 8) == ""
    assert "elements differ, by up to" in beyond_rounding(WAVE, WAVE + 20 * UNIT, 8)


@pytest.mark.parametrize(("changed", "agrees"), [(2, True), (3, False)])
def test_float16_may_be_off_by_one_number_in_a_hundredth_of_the_elements(changed, agrees):
    half = WAVE.astype(np.float16)
    other = half.copy()
    other[:changed] = np.nextafter(other[:changed], np.float16(0))
    assert (beyond_rounding(half, other, 8) == "") is agrees
    other = half.copy()
    other[0] += np.float16(0.01)
    assert beyond_rounding(half, other, 8)


def test_integers_shapes_and_infinities_must_be_the_same():
    steps = np.arange(9, dtype=np.int8)
    assert "1 of 9" in beyond_rounding(steps, np.array([*range(8), 9], np.int8), 8)
    assert "became" in beyond_rounding(WAVE, WAVE[:5], 8)
    infinite = WAVE.copy()
    infinite[3] = np.inf
    assert "infinities" in beyond_rounding(infinite, WAVE, 8)


def test_rounding_is_measured_in_size_and_in_elements():
    other = WAVE.copy()
    other[5] += np.float32(0.25)
    assert rounding_between(WAVE, other) == Rounding(0.25, 1)
    assert rounding_between(np.array([1, 2, 3]), np.array([1, 4, 5])) == Rounding(2.0, 2)


def test_the_share_of_noise_leaves_out_ties_and_single_steps_of_bytes():
    before = np.arange(200)
    assert share_of_noise(before, np.where(before < 2, 999, before)) == 0
    assert share_of_noise(before, np.where(before < 30, 999, before)) == 0.15
    steps = np.zeros(200, np.uint8)
    assert share_of_noise(steps, steps + np.uint8(1)) == 0
    assert share_of_noise(steps, steps + np.uint8(2)) == 1
    assert share_of_noise(WAVE, WAVE + 1) == 0


@pytest.mark.parametrize("at", [0, 120, 200])
def test_a_difference_in_any_block_is_found(at, monkeypatch):
    monkeypatch.setattr("onnx_migrate.verify.compare.arrays._BLOCK", 50)
    other = WAVE.copy()
    other[at] += np.float32(1e-3)
    assert "1 of 201 elements differ, by up to 0.001" in beyond_rounding(WAVE, other, 8)
    assert beyond_rounding(WAVE, WAVE + 4 * UNIT, 8) == "", "the scale is that of all blocks"
