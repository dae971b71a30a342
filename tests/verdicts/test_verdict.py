"""Verdicts as values: JSON, and a line of text."""

from __future__ import annotations

import json

import pytest

from onnx_migrate.report.json_form import json_of
from onnx_migrate.verdicts import Blocker, Comparison, DynamicProof, FirstDifference, Kind, Trial, Verdict

SAME = Comparison("y", (1, 4), (1, 4), "float32", "float32", elements=4)
ROUNDED = Comparison("z", (1, 4), (1, 4), "float32", "float32", 1e-7, float("inf"), 1e-6, 4, 2)


def test_the_summary_says_whether_every_bit_is_the_same():
    assert Verdict(Kind.VERIFIED, evaluator="rt 1", comparisons=(SAME,)).summary == (
        "verified with rt 1, bit for bit the same"
    )
    assert Verdict(Kind.VERIFIED, evaluator="rt 1", comparisons=(SAME, ROUNDED)).summary == (
        "verified with rt 1, the same within the runtime's own rounding"
    )
    assert Verdict(Kind.DIFFERS, "output 'y'").summary == "differs: output 'y'"


@pytest.mark.parametrize(
    ("verdict", "grade"),
    [
        (Verdict(Kind.VERIFIED, comparisons=(SAME,)), "bit-identical"),
        (Verdict(Kind.VERIFIED, comparisons=(SAME, ROUNDED)), "within-rounding"),
        (Verdict(Kind.VERIFIED, comparisons=(SAME,), own_rounding=True), "within-rounding"),
        (Verdict(Kind.VERIFIED, comparisons=(SAME, ROUNDED), given_tolerance=True), "within-tolerance"),
        (Verdict(Kind.VERIFIED, comparisons=(SAME,), given_tolerance=True), "bit-identical"),
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
    }


def test_passes_that_cannot_be_told_apart_are_all_named() -> None:
    assert str(FirstDifference(("a", "b"))) == "the numbers first differ after pass 'a' or 'b'"
