"""What was found of a result, and the verdict that follows."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verdicts import Kind
from onnx_migrate.verify import Tolerance
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.evaluators import LEVELS, EvaluationError
from tests.verify.harness import CONSTANT, RELU, original_run


@pytest.fixture
def findings():
    return Findings(original_run(RELU), Tolerance(), {})


def values(findings, change=lambda y: y, index=0):
    return {name: change(value) for name, value in findings.original.runs[LEVELS[0]][index].items()}


def test_the_largest_difference_of_all_feeds_is_kept(findings):
    findings.compare(LEVELS[0], 0, values(findings))
    findings.compare(LEVELS[0], 1, values(findings, lambda y: y + np.float32(1e-6), 1))
    findings.compare(LEVELS[0], 0, values(findings))
    verdict = findings.verdict("some runtime")
    assert verdict.kind is Kind.VERIFIED
    (entry,) = verdict.comparisons
    assert 5e-7 < entry.largest_absolute < 2e-6
    assert not entry.identical
    assert verdict.evaluator == "some runtime"


def test_a_difference_beyond_what_is_allowed_decides_over_a_difference_in_bits(findings):
    findings.add_bits("'y' differs")
    assert "bit-identity" in findings.verdict("").reason
    findings.compare(LEVELS[0], 0, values(findings, lambda y: y + 1))
    verdict = findings.verdict("")
    assert verdict.kind is Kind.DIFFERS
    assert verdict.reason.startswith("output 'y': 8 of 8 elements differ")
    assert verdict.exact is False


def test_the_first_difference_in_bits_is_reported(findings):
    assert findings.exact is None
    findings.add_bits("")
    assert findings.exact is True
    findings.add_bits("'p' differs")
    findings.add_bits("'q' differs")
    findings.add_bits("")
    assert findings.exact is False
    assert "'p' differs" in findings.verdict("").reason


def test_random_outputs_are_not_compared_and_leave_the_verdict_open():
    findings = Findings(original_run(RELU), Tolerance(), {"y": "RandomNormal"})
    findings.compare(LEVELS[0], 0, values(findings, lambda y: y + 1))
    verdict = findings.verdict("")
    assert (verdict.kind, verdict.comparisons) == (Kind.UNVERIFIED, ())
    assert "RandomNormal" in verdict.reason


def test_a_shape_that_changes_with_rounding_leaves_the_verdict_open(findings):
    findings.original.noise.observe(0, {"y": np.zeros(3, np.float32)})
    findings.compare(LEVELS[0], 0, values(findings))
    verdict = findings.verdict("")
    assert verdict.kind is Kind.UNVERIFIED
    assert "output 'y' of the original changes its shape" in verdict.reason


@pytest.mark.parametrize(("name", "kind"), [("a", Kind.DIFFERS), ("other", Kind.UNVERIFIED)])
def test_an_inner_value_counts_against_the_result_only_under_its_own_name(name, kind):
    findings = Findings(original_run(CONSTANT), Tolerance(), {})
    given = values(findings)
    given[name] = given["a"] + 1
    findings.compare(LEVELS[0], 0, given, [("a", name)])
    verdict = findings.verdict("")
    assert verdict.kind is kind
    assert "output 'y' is the same for all inputs tried" in verdict.reason


def test_an_inner_value_may_have_another_shape_of_as_many_elements():
    findings = Findings(original_run(CONSTANT), Tolerance(), {})
    given = values(findings)
    given["r"] = given["a"].reshape(4)
    findings.compare(LEVELS[0], 0, given, [("a", "r")])
    assert findings.verdict("").kind is Kind.VERIFIED


def test_a_result_that_fails_differs_and_names_the_node(findings):
    error = EvaluationError("no such kernel", "conv_3", loading=True)
    verdict = findings.reject(error, "runtime 1.0")
    assert (verdict.kind, verdict.node) == (Kind.DIFFERS, "conv_3")
    assert verdict.reason == "the result does not load: no such kernel"
    verdict = findings.reject_unsimplified(EvaluationError("bad", "n"))
    assert (verdict.kind, verdict.exact) == (Kind.DIFFERS, False)


def test_an_output_that_is_noise_throughout_is_not_determined():
    findings = Findings(
        original_run("(float[1,300] x) => (int64[1,300] y) { y = Cast<to=7>(x) }"), Tolerance(), {}
    )
    for index in range(len(findings.original.feeds)):
        findings.original.noise.observe(index, values(findings, lambda y: y + (np.arange(300) < 45), index))
        findings.compare(LEVELS[0], index, values(findings, lambda y: y + 1, index))
    verdict = findings.verdict("")
    assert verdict.kind is Kind.UNVERIFIED, "what differs is noise, too"
    assert verdict.reason.startswith(
        "output 'y' is not determined: of the original's, 15% of the elements change"
    )


def test_explained_differences_in_bits_are_accepted_and_noted(findings):
    findings.compare(LEVELS[0], 0, values(findings))
    findings.add_bits("'y' differs")
    findings.add_cause("'c' differs")
    assert findings.verdict("").reason.endswith("'y' differs; 'c' differs")
    findings.explain_bits("'y' differs", "that is rounding")
    verdict = findings.verdict("")
    assert (verdict.kind, verdict.exact, verdict.own_rounding) == (Kind.VERIFIED, False, True)
    assert verdict.notes[-1] == "without optimisation 'y' differs; that is rounding"


def test_a_result_of_which_no_output_was_compared_is_not_verified(findings):
    verdict = findings.verdict("")
    assert verdict.kind is Kind.UNVERIFIED
    assert "output 'y' was compared with nothing" in verdict.reason


def test_a_value_that_differs_given_the_same_inputs_decides(findings):
    findings.compare(LEVELS[0], 0, values(findings))
    findings.add_value_difference("")
    assert findings.verdict("").kind is Kind.VERIFIED
    findings.add_value_difference("'c' differs")
    assert findings.verdict("").reason == "by more than a kernel's rounding: 'c' differs"


@pytest.mark.parametrize(
    ("quantum", "unoptimised", "elements", "step", "kind"),
    [
        (True, 0, 2, 0.005, Kind.VERIFIED),
        (True, 0, 3, 0.005, Kind.DIFFERS),
        (True, 0, 2, 0.02, Kind.DIFFERS),
        (True, 0, 2, np.nan, Kind.DIFFERS),
        (True, 1e-7, 2, 0.005, Kind.DIFFERS),
        (False, 0, 2, 0.005, Kind.DIFFERS),
    ],
    ids=["rare", "not rare", "large", "NaN", "not the same without", "not quantised"],
)
def test_rare_quantisation_steps_with_optimisation_alone_are_rounding(
    quantum, unoptimised, elements, step, kind
):
    findings = Findings(original_run(RELU.replace("[N,4]", "[50,4]")), Tolerance(quantum=quantum), {})
    findings.compare(LEVELS[0], 0, values(findings, lambda y: y + np.float32(unoptimised)))
    moved = values(findings)
    moved["y"] = moved["y"].copy()
    moved["y"].flat[:elements] += np.float32(step) * np.abs(moved["y"]).max()
    findings.compare(LEVELS[1], 0, moved)

    verdict = findings.verdict("")

    assert verdict.kind is kind
    assert any("quantisation steps" in note for note in verdict.notes) == (kind is Kind.VERIFIED)


@pytest.mark.parametrize(("elsewhere", "kind"), [(1e-7, Kind.VERIFIED), (1e-4, Kind.DIFFERS)])
def test_steps_are_rare_where_the_other_elements_differ_by_rounding(elsewhere, kind):
    """A layer behind the quantised ones rounds differently in every element."""
    findings = Findings(original_run(RELU.replace("[N,4]", "[50,4]")), Tolerance(quantum=True), {})
    findings.compare(LEVELS[0], 0, values(findings))
    moved = values(findings, lambda y: y * np.float32(1 + elsewhere))
    moved["y"].flat[:2] += np.float32(0.005) * np.abs(moved["y"]).max()
    findings.compare(LEVELS[1], 0, moved)
    assert findings.verdict("").kind is kind


@pytest.mark.parametrize(("after", "kind"), [("same", Kind.VERIFIED), ("a", Kind.DIFFERS)])
def test_an_inner_value_that_is_paired_twice_is_compared_with_each(after, kind):
    """Upstream of another output, the same value may be paired with one of another type and name."""
    findings = Findings(original_run(CONSTANT), Tolerance(), {})
    computed = values(findings)
    other = {**computed, "b": computed["a"].astype(np.int32), "same": computed["a"].copy()}
    if after == "a":
        other["a"] = computed["a"] + 1
    findings.compare(LEVELS[0], 0, other, [("a", "b"), ("a", "a")])
    verdict = findings.verdict("")
    assert verdict.kind is (kind if after == "a" else Kind.UNVERIFIED)
    assert ("float32 became int32" in verdict.reason) is (after == "same")


@pytest.mark.parametrize(("wide", "kind"), [(0.0, Kind.VERIFIED), (1e-9, Kind.UNVERIFIED)])
def test_an_inner_value_may_be_of_a_wider_type_that_holds_the_same_numbers(wide, kind):
    findings = Findings(original_run(CONSTANT), Tolerance(), {})
    computed = values(findings)
    computed["w"] = computed["a"].astype(np.float64) + wide
    findings.compare(LEVELS[0], 0, computed, [("a", "w")])
    assert findings.verdict("").kind is kind


@pytest.mark.parametrize(
    ("coarsest", "identical", "kind"),
    [
        (2.0**-10, True, Kind.VERIFIED),
        (2.0**-23, True, Kind.DIFFERS),
        (2.0**-10, False, Kind.DIFFERS),
    ],
)
def test_optimisation_may_round_halves_otherwise_where_the_bits_are_the_same_without(
    coarsest, identical, kind
):
    findings = Findings(original_run(RELU), Tolerance(), {}, coarsest=coarsest)
    findings.compare(LEVELS[0], 0, values(findings, lambda y: y if identical else y * np.float32(1 + 1e-7)))
    findings.compare(LEVELS[1], 0, values(findings, lambda y: y * np.float32(1.001)))
    assert findings.verdict("").kind is kind
