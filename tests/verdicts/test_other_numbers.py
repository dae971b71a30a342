"""The statements on numbers that the user asked to be others."""

from __future__ import annotations

import pytest

from onnx_migrate.verdicts import Distance, Kind, RoundedOutput
from onnx_migrate.verdicts.other_numbers import percent, statement_on, within_limits

HALF = RoundedOutput("y", 0.0005, 0.005)


def said(*outputs: RoundedOutput, distance: Distance | None = None) -> tuple[str, bool]:
    statement = within_limits("float16", outputs, distance, {"y", "z"})
    return statement.text, statement.kind is Kind.VERIFIED


@pytest.mark.parametrize(
    ("largest", "text", "holds"),
    [
        (
            0.0001,
            "within the limit: output 'y' differs by up to 0.05 % of its largest value",
            True,
        ),
        (
            0.0049,
            "within the limit: output 'y' differs by up to 0.49 % of its largest value",
            True,
        ),
        (
            0.0051,
            "beyond the limit: output 'y' differs by up to 0.51 % of its largest value",
            False,
        ),
    ],
    ids=["as-the-pass-measured", "just-inside", "just-outside"],
)
def test_the_larger_of_both_measurements_counts(largest: float, text: str, holds: bool) -> None:
    assert said(HALF, distance=Distance("y", 4 * largest, 4.0)) == (f"{text} (limit 0.5 %)", holds)


@pytest.mark.parametrize(("error", "holds"), [(0.0049, True), (0.0051, False)])
def test_the_measurement_of_the_pass_has_the_same_limit(error: float, holds: bool) -> None:
    assert said(RoundedOutput("y", error, 0.005))[1] is holds


def test_the_output_that_is_nearest_to_its_limit_is_named() -> None:
    text, holds = said(HALF, RoundedOutput("z", 0.02, 0.04))
    assert (text.partition(": ")[2], holds) == (
        "output 'z' differs by up to 2 % of its largest value (limit 4 %)",
        True,
    )


def test_of_integers_elements_are_counted_and_no_distance() -> None:
    index = RoundedOutput("i", 0.25, 0.5)
    text, holds = said(index, distance=Distance("i", 7.0, 7.0))
    assert (text.partition(": ")[2], holds) == (
        "25 % of the elements of output 'i' differ (limit 50 %)",
        True,
    )


def test_other_shapes_and_infinities_are_beyond_every_limit() -> None:
    for distance, error in ((Distance("y", 0.0, 0.0, reshaped=True), 0.0), (None, float("inf"))):
        text, holds = said(RoundedOutput("y", error, 0.005), distance=distance)
        assert "has another shape, or NaN or infinities in other places" in text
        assert not holds


def test_without_a_limit_the_distance_is_told() -> None:
    text = "other numbers, as you asked: output 'y' differs by up to 48 % of its largest value"
    assert str(statement_on("resize intent", Distance("y", 0.823, 1.7), {"y"})) == f"resize intent: {text}"
    assert statement_on("int32", Distance("y", 0.0, 1.0), ()).text.endswith("output 'y' does not differ")


def test_of_integers_that_differ_no_number_is_told() -> None:
    """Their distance is infinite, which says nothing of NaN."""
    found = statement_on("resize intent", Distance("mask", float("inf"), 0.0), {"y"})
    assert found.text == "other numbers, as you asked: elements of output 'mask' differ"


def test_a_distance_that_nobody_measured_is_no_proof() -> None:
    statement = statement_on("resize intent", None, ())
    assert statement.kind is Kind.UNVERIFIED
    assert "was not measured" in statement.text


@pytest.mark.parametrize(
    ("share", "text"), [(0.00033, "0.033 %"), (0.994, "99 %"), (1.0, "100 %"), (12.3, "1230 %")]
)
def test_shares_are_percent(share: float, text: str) -> None:
    assert percent(share) == text
