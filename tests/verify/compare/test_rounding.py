"""What counts as a kernel's rounding of a value that is computed from the same inputs, and what does not."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare.comparison import Rounding
from onnx_migrate.verify.compare.rounding import beyond_rounding, rounding_between, share_of_noise

X = np.linspace(-1, 1, 201, dtype=np.float32)
ULP = np.float32(2**-23)


def test_a_few_units_of_the_largest_magnitude_are_rounding_and_more_are_not():
    assert beyond_rounding(X, X, 8) == ""
    assert beyond_rounding(X, X + 4 * ULP, 8) == ""
    assert "elements differ, by up to" in beyond_rounding(X, X + 20 * ULP, 8)


@pytest.mark.parametrize(("changed", "agrees"), [(2, True), (3, False)])
def test_float16_may_be_off_by_one_number_in_a_hundredth_of_the_elements(changed, agrees):
    half = X.astype(np.float16)
    other = half.copy()
    other[:changed] = np.nextafter(other[:changed], np.float16(0))
    assert (beyond_rounding(half, other, 8) == "") is agrees
    other = half.copy()
    other[0] += np.float16(0.01)
    assert beyond_rounding(half, other, 8)


def test_integers_shapes_and_infinities_must_be_the_same():
    steps = np.arange(9, dtype=np.int8)
    assert "1 of 9" in beyond_rounding(steps, np.array([*range(8), 9], np.int8), 8)
    assert "became" in beyond_rounding(X, X[:5], 8)
    infinite = X.copy()
    infinite[3] = np.inf
    assert "infinities" in beyond_rounding(infinite, X, 8)


def test_rounding_is_measured_in_size_and_in_elements():
    other = X.copy()
    other[5] += np.float32(0.25)
    assert rounding_between(X, other) == Rounding(0.25, 1)
    assert rounding_between(np.array([1, 2, 3]), np.array([1, 4, 5])) == Rounding(2.0, 2)


def test_the_share_of_noise_leaves_out_ties_and_single_steps_of_bytes():
    before = np.arange(200)
    assert share_of_noise(before, np.where(before < 2, 999, before)) == 0
    assert share_of_noise(before, np.where(before < 30, 999, before)) == 0.15
    steps = np.zeros(200, np.uint8)
    assert share_of_noise(steps, steps + np.uint8(1)) == 0
    assert share_of_noise(steps, steps + np.uint8(2)) == 1
    assert share_of_noise(X, X + 1) == 0


@pytest.mark.parametrize("at", [0, 120, 200])
def test_a_difference_in_any_block_is_found(at, monkeypatch):
    monkeypatch.setattr("onnx_migrate.verify.compare.arrays._BLOCK", 50)
    other = X.copy()
    other[at] += np.float32(1e-3)
    assert "1 of 201 elements differ, by up to 0.001" in beyond_rounding(X, other, 8)
    assert beyond_rounding(X, X + 4 * ULP, 8) == "", "the scale is that of all blocks"
