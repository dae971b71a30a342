"""The arrays inside a value, and their magnitudes."""

from __future__ import annotations

import numpy as np

from onnx_migrate.verify.compare.values import extremes, flatten, scale_of

X = np.float32([1, -3, np.nan, np.inf])


def test_sequences_maps_and_optionals_are_flattened_with_a_name_for_each_part():
    parts = flatten("y", [{"b": X, "a": X}, None, 3.0])
    assert [name for name, _ in parts] == ["y[0]['a']", "y[0]['b']", "y[1]", "y[2]"]
    assert parts[2][1] is None
    assert parts[3][1].shape == ()


def test_the_scale_is_the_largest_finite_magnitude_and_that_of_integers_is_0():
    assert scale_of(X) == 3
    assert scale_of(np.array([5])) == 0
    assert scale_of(None) == 0


def test_extremes_are_those_of_the_finite_elements():
    assert extremes(np.float16([2, -3, 1])) == (-3, 2)
    assert extremes(X) == (-3, 1)
    for array in (np.float32([]), np.float32([np.inf, np.nan])):
        assert extremes(array) is None
    assert scale_of(np.float32([np.nan])) == 0
    assert scale_of(np.complex64([3 + 4j, np.inf])) == 5
    assert scale_of(np.float32([-5, 2])) == 5
    assert scale_of(np.float32([1, 2, np.nan])) == 2
