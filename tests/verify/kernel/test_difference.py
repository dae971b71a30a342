"""How two arrays differ, measured in blocks."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.kernel import arrays
from onnx_migrate.verify.kernel.difference import Difference, finite_parts, largest_step

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


def test_the_largest_step_is_that_of_integers():
    assert largest_step(np.array([1, 9], np.uint8), np.array([4, 8], np.uint8)) == 3
    assert largest_step(np.array([True]), np.array([False])) == 0
    assert largest_step(np.array([], np.int32), np.array([], np.int32)) == 0
