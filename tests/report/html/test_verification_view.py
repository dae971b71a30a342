"""The part of a page about a verification."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import onnx_migrate
from onnx_migrate.report.failure import Failure
from onnx_migrate.report.html.render import model_page
from onnx_migrate.report.html.verification_view import Bar, VerificationView, shape_text
from onnx_migrate.verdicts import Comparison, Element, FeedNote, Histogram, Kind, Verdict


def comparison(**more: Any) -> Comparison:
    known = Comparison(
        "y", (2, 3), (2, 3), "float32", "float32", 0.00012345, 0.1, 0.001, elements=6, differing=2
    )
    return replace(known, **more)


def view(*comparisons: Comparison, **more: Any) -> VerificationView:
    feeds = (FeedNote("normal", 0, (("x", (1, 2)), ("z", None))),)
    known = Verdict(Kind.VERIFIED, "", "onnxruntime 1.31.1", feeds, comparisons, notes=("a note",))
    return VerificationView.of(replace(known, **more))


def test_the_verdict_names_the_evaluator_and_the_inputs() -> None:
    found = view()

    assert found.kind == "verified"
    assert found.text == "with onnxruntime 1.31.1: every output is bit for bit the same"
    assert found.feeds == ("normal, seed 0: x [1, 2], z any shape",)
    assert found.notes == ("a note",)


def test_the_verdict_has_its_grade_in_words() -> None:
    assert view().text.endswith(": every output is bit for bit the same")
    assert "the runtime's own rounding" in view(own_rounding=True).text


@pytest.mark.parametrize(
    ("more", "grade", "text"),
    [
        ({"differing": 0}, "same", "bit-identical"),
        ({}, "near", "equal within the tolerance"),
        ({"problem": "5 of 6 differ"}, "differs", "5 of 6 differ"),
    ],
)
def test_an_output_is_graded(more: dict[str, Any], grade: str, text: str) -> None:
    (finding,) = view(comparison(**more)).findings

    assert (finding.grade, finding.text) == (grade, text)
    assert (finding.largest, finding.allowed, finding.differing) == (
        "0.000123",
        "0.001",
        f"{more.get('differing', 2)} of 6",
    )


def test_an_output_without_elements_has_no_figures() -> None:
    (finding,) = view(comparison(elements=0, shape_after=(0,))).findings

    assert (finding.shape, finding.largest, finding.allowed, finding.differing) == ("[0]", "", "", "")


def test_shapes() -> None:
    assert [shape_text(dims) for dims in (None, [], [1, "N", None])] == ["any shape", "[]", "[1, N, ?]"]


def test_a_difference_shows_its_outputs() -> None:
    error = onnx_migrate.VerificationFailed("output 'y' differs")
    finding = Comparison(
        "y", (6,), (6,), "float32", "float32", math.inf, elements=6, differing=5, problem="5 of 6 differ"
    )
    error.verification = Verdict(Kind.DIFFERS, comparisons=(finding,))

    page = model_page(Failure.of("m.onnx", error))

    assert '<span class="differs">5 of 6 differ</span>' in page
    assert ">inf<" in page


def test_a_histogram_is_a_row_of_bars() -> None:
    histogram = Histogram((1e-3, 1e-2, 1e-1), (4, 1), equal=2)
    largest = Element((0, 1), 1.0, 1.05)

    (finding,) = view(comparison(problem="differs", histogram=histogram, largest_at=largest)).findings

    assert finding.place == "at [0, 1] 1 became 1.05"
    assert finding.bars == (
        Bar(50, "equal: 2"),
        Bar(100, "1e-03 to 1e-02: 4"),
        Bar(25, "1e-02 to 1e-01: 1"),
    )
    assert view(comparison()).findings[0].bars == ()
