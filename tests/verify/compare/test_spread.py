"""How many elements differ by how much, and where most."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_migrate.verdicts import Comparison, Element, Histogram
from onnx_migrate.verify.compare.spread import with_spread
from onnx_migrate.verify.kernel import Observation, Tolerance, arrays, judge


def spread(before: Any, after: Any) -> Comparison:
    a, b = np.asarray(before), np.asarray(after)
    return with_spread(judge(Observation("y", a, b, Tolerance(atol=0.0))), a, b)


@pytest.mark.parametrize("block", [1 << 20, 2])
def test_elements_are_counted_by_powers_of_ten(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_BLOCK", block)
    before = np.zeros((2, 3))
    after = np.array([[0.0, 2e-3, 5e-3], [-0.5, 1e-12, 0.0]])

    found = spread(before, after)

    assert found.histogram == Histogram(
        (0.0, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0), (1, 0, 0, 0, 0, 0, 2, 0, 1), 2
    )
    assert found.largest_at == Element((1, 0), 0.0, -0.5)


def test_a_value_on_an_edge_is_in_the_bin_above() -> None:
    found = spread(np.zeros(2), np.array([0.125, 1.0]))

    assert found.histogram is not None
    assert found.histogram.edges == (0.1, 1.0, 10.0)
    assert found.histogram.counts == (1, 1)


def test_the_first_element_that_is_not_finite_is_named() -> None:
    found = spread(np.array([1.0, np.nan, np.inf, 4.0]), np.array([2.0, np.nan, -np.inf, np.nan]))

    assert found.largest_at == Element((2,), np.inf, -np.inf)
    assert found.histogram == Histogram((1.0, 10.0), (1,), equal=1, not_finite=2)


def test_whole_numbers_and_texts() -> None:
    whole = spread(np.array([[200, 3]], np.uint8), np.array([[100, 3]], np.uint8))
    text = spread(np.array(["a", "b"], object), np.array(["a", "c"], object))
    flag = spread(np.array([True, False]), np.array([True, True]))

    assert (whole.largest_at, whole.histogram) == (
        Element((0, 0), 200, 100),
        Histogram((100.0, 1000.0), (1,), equal=1),
    )
    assert (text.largest_at, text.histogram) == (Element((1,), "'b'", "'c'"), None)
    assert (flag.largest_at, flag.histogram) == (Element((1,), "False", "True"), None)


@pytest.mark.parametrize(
    ("before", "after"),
    [(np.zeros(3), np.zeros(3)), (np.zeros(3), -np.zeros(3)), (np.zeros(3), np.zeros(4)), (np.zeros(0), np.zeros(0))],
    ids=["equal", "signed zeros", "shape", "empty"],
)  # fmt: skip
def test_where_no_element_differs_nothing_is_added(before: Any, after: Any) -> None:
    found = spread(before, after)

    assert (found.histogram, found.largest_at) == (None, None)


def test_what_is_allowed_is_counted_only_where_it_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx_migrate.verify.compare import spread as module

    a, b = np.zeros(10), np.full(10, 1e-9)
    near = judge(Observation("y", a, b, Tolerance(atol=1.0)))

    assert with_spread(near, a, b).histogram is not None
    monkeypatch.setattr(module, "_QUICK", 9)
    assert with_spread(near, a, b) is near
    assert spread(a, b).histogram is not None


def test_the_smallest_differences_have_a_bin() -> None:
    found = spread(np.zeros(1), np.array([5e-324]))

    assert found.histogram is not None
    assert sum(found.histogram.counts) == 1
