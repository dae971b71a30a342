"""The noise of the original: measured, accepted up to a limit, exceeded."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare.noise import Noise, share_of_noise, with_run
from onnx_migrate.verify.kernel import Measurement, Tolerance

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
    assert noise.outputs_beyond(1e-2, 0, again) == {"z"}
    assert noise.outputs_beyond(1e-3, 0, again) == {"y", "z"}


def test_an_output_with_an_unstable_shape_is_not_compared():
    noise = Noise([{"y": X}])
    noise.observe(0, {"y": X[:5]})
    assert noise.unstable_shapes == {"y"}
    assert noise.compare("y", X, X[:7], 0, Tolerance()) == []


def test_discrete_elements_may_differ_only_if_they_change_in_the_original_itself():
    before = np.arange(200)
    tie = np.where(before == 7, 999, before)
    noise = Noise([{"y": before}])
    assert noise.compare("y", before, tie, 0, Tolerance())[0].problem
    noise.observe(0, {"y": tie})
    assert noise.compare("y", before, np.where(before == 7, 5, before), 0, Tolerance())[0].agrees
    (entry,) = noise.compare("y", before, np.where(before == 8, 5, before), 0, Tolerance())
    assert entry.doubt, "another element than the one that rounding is known to change"
    assert noise.compare("y", before, before + 1, 0, Tolerance())[0].problem


def test_each_run_adds_to_what_rounding_changes():
    runs = [np.where(np.arange(4) == at, 9, np.arange(4)) for at in (1, 3)]
    measured = with_run(with_run(Measurement(), np.arange(4), runs[0]), np.arange(4), runs[1])
    assert measured.unstable.tolist() == [False, True, False, True]
    assert with_run(Measurement(), X, X).unstable is None
    nan = X.copy()
    nan[3] = np.nan
    assert np.flatnonzero(with_run(Measurement(), X, nan).unstable).tolist() == [3]
    assert with_run(Measurement(), X, X[:4]).largest == np.inf


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


def test_an_explained_difference_allows_twice_as_much_up_to_the_ceiling():
    noise = Noise([{"y": X}])
    off = X + np.float32(0.008)
    assert problems(noise, off)
    noise.explain(0, "y", X + np.float32(0.005))
    assert problems(noise, off) == []
    assert problems(noise, X + np.float32(0.02)), "more than twice"
    noise.explain(0, "y", X + np.float32(0.02))
    (entry,) = noise.compare("y", X, X + np.float32(0.02), 0, Tolerance())
    assert "would look the same as rounding" in entry.doubt


def test_elements_that_are_undefined_are_left_out():
    noise = Noise([{"y": X}])
    undefined = X < -0.9
    noise.leave_out(0, "y", {"y": undefined})
    off = np.where(undefined, np.float32(7), X)
    (entry,) = noise.compare("y", X, off, 0, Tolerance())
    assert entry.agrees
    assert entry.left_out == np.count_nonzero(undefined)
    assert problems(noise, off + np.float32(1))


def test_of_a_feed_that_ran_once_the_noise_is_assumed_in_proportion():
    noise = Noise([{"y": np.float32([1, 2, 4])}])
    noise.observe(0, {"y": np.float32([1, 2, 4.01])})
    noise.assume({"y": np.float32([10, 20, 40])})
    entry = noise.compare("y", np.float32([10, 20, 40]), np.float32([10, 20, 40.2]), 1, Tolerance())[0]
    assert entry.allowed == pytest.approx(0.4)
    assert not entry.problem
    assert noise.compare("y", np.float32([10, 20, 40]), np.float32([10, 20, 41]), 1, Tolerance())[0].problem


WAVE = np.linspace(-1, 1, 201, dtype=np.float32)


def test_the_share_of_noise_leaves_out_ties_and_single_steps_of_bytes():
    before = np.arange(200)
    assert share_of_noise(before, np.where(before < 2, 999, before)) == 0
    assert share_of_noise(before, np.where(before < 30, 999, before)) == 0.15
    steps = np.zeros(200, np.uint8)
    assert share_of_noise(steps, steps + np.uint8(1)) == 0
    assert share_of_noise(steps, steps + np.uint8(2)) == 1
    assert share_of_noise(WAVE, WAVE + 1) == 0
