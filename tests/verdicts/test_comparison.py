"""When an output counts as the same, and its differences as a histogram."""

from __future__ import annotations

import pytest

from onnx_migrate.verdicts import Comparison, Element, Histogram


@pytest.mark.parametrize(
    ("differing", "problem", "identical", "agrees"),
    [
        (0, "", True, True),
        (1, "", False, True),
        (1, "differs by 2", False, False),
        (0, "has another shape", False, False),
    ],
)
def test_an_output_agrees_within_what_is_allowed_and_is_identical_bit_for_bit(
    differing: int, problem: str, identical: bool, agrees: bool
) -> None:
    found = Comparison(
        "y", (2,), (2,), "float32", "float32", elements=2, differing=differing, problem=problem
    )

    assert (found.identical, found.agrees) == (identical, agrees)


FULL = Histogram((0.0, 1e-7, 1e-6, 1e-5), (3, 0, 1200), equal=40, not_finite=1)


def test_lines_are_aligned_and_bars_are_in_proportion() -> None:
    assert list(FULL.lines()) == [
        "equal               40  #",
        "less than 1e-07      3  #",
        "1e-07 to 1e-06       0",
        "1e-06 to 1e-05   1,200  ####################",
        "infinity or NaN      1  #",
    ]


def test_as_one_line_empty_ranges_are_left_out() -> None:
    assert str(FULL) == ("40 equal, 3 by less than 1e-07, 1,200 by 1e-06 to 1e-05, 1 by infinity or NaN")


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (Element((0, 2), 0.5, -1.25e-9), "at [0, 2] 0.5 became -1.25e-09"),
        (Element((), float("nan"), 1), "at [] nan became 1"),
        (Element((3,), "'a'", "'b'"), "at [3] 'a' became 'b'"),
    ],
)
def test_an_element_has_its_index_and_both_values(element: Element, text: str) -> None:
    assert str(element) == text
