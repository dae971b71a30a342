"""How the survey counts, on results that are made up, and what it found against the tables."""

from __future__ import annotations

import json

import pytest

from onnx_migrate.standard.targets import resolve
from tests.campaigns.runtimes.sample import Sampled
from tests.campaigns.runtimes.survey import CONVERTERS, MEASURED, best, lacking, part, right_at

MEASUREMENTS = {
    key: found
    for key, found in json.loads(MEASURED.read_text(encoding="utf-8")).items()
    if key.split()[0] in CONVERTERS
}


def sampled(operator: str, **operators: str) -> Sampled:
    """A case with a model at each opset given, as in v7="Upsample Add"; "" is one that cannot be brought there."""
    names = {int(key[1:]): f"opset{key[1:]}/case" if used else "" for key, used in operators.items()}
    used = {names[int(key[1:])]: frozenset(text.split()) for key, text in operators.items() if text}
    return Sampled(operator, names, used)


def test_a_model_counts_until_the_opset_at_which_it_changes() -> None:
    case = sampled("Mod", v7="Div Mul", v10="Mod", v13="Mod")
    ended = {"opset7/case": "right", "opset10/case": "fails", "opset13/case": "right"}

    assert right_at(case, ended, range(7, 15)) == [True] * 3 + [False] * 3 + [True] * 2


def test_what_cannot_be_brought_to_an_opset_is_not_right_there() -> None:
    case = sampled("Upsample", v9="Upsample", v10="", v11="Resize")
    ended = {"opset9/case": "right", "opset11/case": "right"}

    assert right_at(case, ended, range(8, 12)) == [None, True, False, True]


def test_an_operator_is_lacking_if_no_model_with_it_is_right() -> None:
    cases = [
        sampled("Mish", v7="Exp Tanh", v18="Mish"),
        sampled("Loop", v7="Loop"),
        sampled("Scan", v7="Loop Concat"),
    ]
    names = [f"opset{opset}/case" for opset in (7, 18)]

    assert lacking(cases[:1], dict(zip(names, ["right", "fails"], strict=True))) == ["Mish"]
    assert lacking(cases[:1], dict.fromkeys(names, "right")) == []
    assert lacking(cases[1:2], {"opset7/case": "fails"}) == ["Loop"]
    assert lacking(cases[1:], {"opset7/case": "right"}) == []  # as a part of another
    assert lacking(cases[:1], {"opset7/case": "right"}) == []  # it was not tried
    assert lacking(cases[1:2], {"opset7/case": "crashes"}) == []  # which may be due to the data
    assert lacking(cases[1:2], {"opset7/case": "fails"}, ["Loop"]) == []


@pytest.mark.parametrize(
    ("right", "opset"),
    [({"9": 100, "17": 100, "18": 97}, 17), ({"9": 90, "17": 100, "18": 98}, 18), ({"9": 100, "17": 90}, 9)],
)
def test_the_best_opset_of_the_small_sample_loses_two_in_100(right: dict[str, int], opset: int) -> None:
    assert best({"right": right}) == opset


@pytest.mark.parametrize(
    ("lost", "newest", "opset"),
    [({}, 18, 18), ({}, 17, 17), ({"18": 3}, 18, 18), ({"18": 4}, 18, 17), ({"17": 4, "18": 4}, 18, 9)],
)
def test_the_best_opset_of_the_whole_sample_loses_three_in_400(
    lost: dict[str, int], newest: int, opset: int
) -> None:
    right = {key: 400 - lost.get(key, 0) for key in ("9", "17", "18")}

    assert best({"right": right, "lost": lost, "newest": newest}) == opset


def test_slow_runtimes_run_one_case_of_each_operator_and_all_fixtures() -> None:
    add, fixture = sampled("Add", v7="Add"), sampled("", v7="Conv")

    assert list(part({"a": add, "b": add, "c": fixture, "d": fixture})) == ["a", "c", "d"]


@pytest.mark.parametrize("key", MEASUREMENTS)
def test_a_table_has_what_was_measured(key: str) -> None:
    """The opset is the best; operators that no model computed are lacking, or taken in some forms or with some attributes."""
    measured = MEASUREMENTS[key]
    (target,) = resolve([key.replace(" ", "==")])

    assert target.measured
    assert target.opset == best(measured)
    for name in measured["lacking"]:
        some = any(row.attributes for row in target.rows_of("", name)) or name in (target.boxes or {})
        assert not target.has("", name) or some, name
    if forms := measured["forms"]:
        assert target.row.resize_axes == (
            forms["18 sizes of axes"] == forms["18 scales of axes"] == forms["18 sizes"]
        )
