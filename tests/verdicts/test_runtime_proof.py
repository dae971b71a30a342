"""Which outcome a pair of models has, and how it is said."""

from __future__ import annotations

import json

import pytest

from onnx_migrate.report.json_form import json_of
from onnx_migrate.verdicts import Comparison
from onnx_migrate.verdicts.runtime_proof import PASSING, RuntimeProof, Side, outcome_of


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
    assert both.text == "is off by 0.04 of 4 in 'z' (allowed 0.041)"
    wrong = Side(comparisons=(*side(5, 9).comparisons, *side(1, 0.5, "z").comparisons))
    assert wrong.text.startswith("is off by 1 of 4 in 'z'")
    assert not wrong.right


def test_another_shape_is_told_in_words():
    item = Comparison("y", (2,), (3,), "float32", "float32", problem="shape [2] became [3]")
    assert Side(comparisons=(item,)).text == "is wrong in 'y': shape [2] became [3]"


def test_infinities_are_json():
    found = json_of(side(float("inf")))
    assert found["largest_absolute"] == "inf"
    assert found["comparisons"][0]["largest_absolute"] == "inf"
