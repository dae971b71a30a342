"""Verdicts, comparisons and proofs in other runtimes as values and as text."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from onnx_migrate.json_form import json_of
from onnx_migrate.verdicts import (
    Blocker,
    Comparison,
    Distance,
    DynamicProof,
    Element,
    FirstDifference,
    Histogram,
    Kind,
    RoundedOutput,
    Statement,
    Trial,
    Verdict,
)
from onnx_migrate.verdicts.runtime_proof import PASSING, RuntimeProof, Side, outcome_of

SAME = Comparison("y", (1, 4), (1, 4), "float32", "float32", elements=4)
CONVERTED = Statement("conversion", "bit-identical")
NEAR = Comparison("z", (1, 4), (1, 4), "float32", "float32", 1e-7, 1e-6, 1e-6, 4, 2)
ROUNDED = Comparison("z", (1, 4), (1, 4), "float32", "float32", 1e-7, float("inf"), 1e-6, 4, 2)


def test_the_summary_says_whether_every_bit_is_the_same():
    assert Verdict(Kind.VERIFIED, evaluator="rt 1", comparisons=(SAME,)).summary == (
        "verified: bit-identical"
    )
    assert Verdict(Kind.VERIFIED, evaluator="rt 1", comparisons=(SAME, NEAR)).summary == (
        "verified: within rounding (largest difference 1e-06 of the largest value)"
    )
    allowed = Verdict(Kind.VERIFIED, comparisons=(NEAR,), given_tolerance=True)
    assert allowed.summary.startswith("verified: within the limit that you gave (largest difference 1e-06")
    zeros = Verdict(Kind.VERIFIED, comparisons=(replace(SAME, differing=2),))
    assert zeros.summary == "verified: within rounding (only the signs of zeros differ)"
    assert Verdict(Kind.DIFFERS, "output 'y'").summary == "differs: output 'y'"


def test_a_result_with_other_numbers_has_all_statements_in_its_summary_and_never_one_word_for_them():
    other = Statement("float16", "within the limit: output 'y' does not differ (limit 0.5 %)")
    verdict = Verdict(Kind.VERIFIED, comparisons=(SAME,), statements=(CONVERTED, other))
    assert verdict.summary == f"verified: conversion: bit-identical; {other}"
    assert verdict.agreement == "bit-identical", "what the rows compare"


@pytest.mark.parametrize(
    ("verdict", "grade"),
    [
        (Verdict(Kind.VERIFIED, comparisons=(SAME,)), "bit-identical"),
        (Verdict(Kind.VERIFIED, comparisons=(SAME, ROUNDED)), "within-rounding"),
        (Verdict(Kind.VERIFIED, comparisons=(SAME,), own_rounding=True), "within-rounding"),
        (Verdict(Kind.VERIFIED, comparisons=(SAME, ROUNDED), given_tolerance=True), "within-tolerance"),
        (Verdict(Kind.VERIFIED, comparisons=(SAME,), given_tolerance=True), "bit-identical"),
        (Verdict(Kind.VERIFIED, comparisons=(SAME,), statements=(CONVERTED,)), "other-numbers"),
        (Verdict(Kind.DIFFERS), "differs"),
        (Verdict(Kind.UNVERIFIED), ""),
    ],
)
def test_the_grade_says_how_alike_the_models_are(verdict, grade):
    assert verdict.grade == json_of(verdict)["grade"] == grade


def test_json_has_the_kind_as_text_and_no_infinities():
    plain = json_of(Verdict(Kind.VERIFIED, comparisons=(SAME, ROUNDED)))
    read = json.loads(json.dumps(plain, allow_nan=False))
    assert read["kind"] == "verified"
    assert [entry["identical"] for entry in read["comparisons"]] == [True, False]
    assert read["comparisons"][1]["largest_relative"] == "inf"
    assert read["comparisons"][0]["shape_before"] == [1, 4]


def test_a_proof_keeps_its_trials_and_blocker_in_json():
    proof = DynamicProof(False, "r", Blocker("n", "Reshape", "y", "s", "[1, 4]"), (Trial((("N", 2),), "p"),))
    plain = json.loads(json.dumps(json_of(proof)))
    assert plain["blocker"]["holds"] == "[1, 4]"
    assert plain["trials"] == [{"sizes": [["N", 2]], "problem": "p"}]


@pytest.mark.parametrize(
    ("blocker", "text"),
    [
        (Blocker("n", "Reshape", "y", "s", "[1]"), "Reshape 'n' with constant 's' = [1]"),
        (Blocker("", "Softmax", "y"), "Softmax 'y'"),
        (Blocker("fused", ""), "'fused'"),
    ],
)
def test_a_blocker_is_named_by_its_node_or_its_output(blocker, text):
    assert str(blocker) == text


def test_the_pass_and_the_node_are_named() -> None:
    found = FirstDifference(("mine",), "relu_3", "Relu", "v3", "differs")

    assert str(found) == "the numbers first differ after pass 'mine', at node 'relu_3' (Relu)"
    assert json.loads(json.dumps(json_of(found))) == {
        "passes": ["mine"],
        "node": "relu_3",
        "operator": "Relu",
        "value": "v3",
        "problem": "differs",
        "original_node": "",
        "original_operator": "",
        "original_value": "",
        "original_nodes": [],
        "nodes": [],
        "agreed": [],
        "reasons": [],
    }


def test_the_nodes_of_two_models_are_named() -> None:
    found = FirstDifference((), original_nodes=("Conv 'a'", "BatchNormalization 'b'"), nodes=("Conv 'a'",))

    assert (
        str(found)
        == "the models first differ at Conv 'a' + BatchNormalization 'b' (in the second model: Conv 'a')"
    )


def test_passes_that_cannot_be_told_apart_are_all_named() -> None:
    assert str(FirstDifference(("a", "b"))) == "the numbers first differ after pass 'a' or 'b'"


def side(off: float, allowed: float = 0.1, output: str = "y") -> Side:
    problem = "off" if off > allowed else ""
    item = Comparison(
        output,
        (2,),
        (2,),
        "float32",
        "float32",
        off,
        off / 4,
        allowed,
        elements=2,
        differing=int(off > 0),
        problem=problem,
    )
    return Side(comparisons=(item,))


RIGHT, OFF, GONE = side(0.01), side(2.2), Side("load", "no such operator")


@pytest.mark.parametrize(
    ("result", "original", "alike", "outcome"),
    [
        (RIGHT, RIGHT, True, "right"),
        (RIGHT, GONE, False, "gained"),
        (RIGHT, OFF, False, "mended"),
        (OFF, OFF, True, "alike"),
        (OFF, OFF, False, "otherwise"),
        (OFF, RIGHT, False, "worse"),
        (OFF, GONE, False, "wrong"),
        (GONE, RIGHT, False, "lost"),
        (GONE, OFF, False, "lost"),
        (GONE, GONE, False, "refused"),
    ],
)
def test_every_pair_has_an_outcome(result, original, alike, outcome):
    assert outcome_of(result, original, alike=alike) == outcome
    proof = RuntimeProof("x", "X 1", outcome, result, original)
    assert proof.passed == (outcome in PASSING) == (result.right or alike)
    assert result.text in proof.text
    assert original.text in proof.text
    assert json.loads(json.dumps(json_of(proof)))["outcome"] == outcome


def test_the_worst_output_is_told_by_what_is_allowed():
    both = Side(comparisons=(*side(0.05).comparisons, *side(0.04, 0.041, "z").comparisons))
    assert both.text == "differs by up to 1 % of the largest value in 'z' (limit 1 %)"
    wrong = Side(comparisons=(*side(5, 9).comparisons, *side(1, 0.5, "z").comparisons))
    assert wrong.text.startswith("differs by up to 25 % of the largest value in 'z'")
    assert not wrong.right


def test_another_shape_is_told_in_words():
    item = Comparison("y", (2,), (3,), "float32", "float32", problem="shape [2] became [3]")
    assert Side(comparisons=(item,)).text == "is wrong in 'y': shape [2] became [3]"


def test_infinities_are_json():
    found = json_of(side(float("inf")))
    assert found["largest_absolute"] == "inf"
    assert found["comparisons"][0]["largest_absolute"] == "inf"


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


def test_an_output_of_another_shape_is_not_off_by_infinity():
    assert str(RoundedOutput("y", float("inf"), 0.005, type="float16")) == (
        "output 'y' has another shape than the original's, or NaN or infinite numbers that the original does not have,"
        " in simulated float16"
    )


def test_of_integers_that_differ_a_distance_tells_no_number():
    assert str(Distance("y", float("inf"), 0.0)) == "elements of output 'y' change"
    assert (
        str(Distance("y", float("inf"), 0.0, differing=0.071)) == "7.1 % of the elements of output 'y' change"
    )


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            RoundedOutput("y", 0.0031, 0.005, type="float16"),
            "output 'y': error 0.31 % in simulated float16 (limit 0.5 % of the largest value)",
        ),
        (
            RoundedOutput("y", 12.0, 1e-4, type="float32"),
            "output 'y': error 1,200 % in float32 (limit 0.01 % of the largest value)",
        ),
        (
            RoundedOutput("k", 0.25, 0.02, type="bfloat16", counts_elements=True),
            "output 'k': error 25 % in simulated bfloat16 (limit 2 % of the elements)",
        ),
    ],
)
def test_a_rounded_output_has_its_error_and_limit_in_percent(output: RoundedOutput, text: str) -> None:
    assert str(output) == text
