"""The noise of the original: measured, accepted up to a limit, exceeded."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare.noise import Noise
from onnx_migrate.verify.compare.tolerance import Tolerance

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
    noise.observe_proved(0, {"y": X + np.float32(0.02)})
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
