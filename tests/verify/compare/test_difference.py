"""What is measured of two arrays of floats, also where they are longer than a block."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.compare import arrays
from onnx_migrate.verify.compare.difference import Difference, finite_parts

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
