"""A result is run in every configuration of the original's run, and its inner values are paired."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from onnx_migrate import process
from onnx_migrate.verdicts import Distance, Kind, Verdict
from onnx_migrate.verify import Feed, Feeds, Tolerance
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.equivalence.result_run import (
    DISTANCE_STAGE,
    ResultRun,
    bit_differences,
    distance,
    run_unsimplified,
)
from onnx_migrate.verify.evaluators import EvaluationError, Runnable
from tests.verify.harness import CONSTANT, RELU, RENAMED, ULP, net, original_run, runnable, verdict


def run(before, after):
    findings = Findings(original_run(before), Tolerance(), {})
    running = ResultRun(runnable(after), findings)
    running.run()
    return findings, running


def test_every_configuration_and_feed_is_compared(monkeypatch):
    seen = []
    compare = Findings.compare
    monkeypatch.setattr(Findings, "compare", lambda *args: (seen.append(args[1:3]), compare(*args)))
    findings, running = run(RELU, RELU)
    assert seen == [
        (level, index) for level in findings.original.runs for index in range(len(findings.original.feeds))
    ]
    assert running.evaluator.startswith("onnxruntime ")


def test_bits_are_compared_before_the_outputs_are():
    add = "(float[N,4] x) => (float[N,4] y) { y = Add(x, b) }"
    before, rounded = net(add, b=1.0), net(add, b=1 + ULP)
    original = original_run(before)
    found = []
    for result in (before, rounded):
        findings = Findings(original_run(before), Tolerance(), {})
        ResultRun(runnable(result), findings).run(lambda runs: found.append(bit_differences(original, runs)))
    same, differing = found
    assert same == {}
    assert list(differing) == [0, 1]
    assert differing[0].first.startswith("'y' differs in ")
    assert bit_differences(original, run_unsimplified(runnable(rounded), original), ["y"]) == {}


def test_inner_values_are_paired_by_their_position_upstream():
    findings, _ = run(CONSTANT, RENAMED)
    verdict = findings.verdict("")
    assert verdict.kind is Kind.VERIFIED
    assert {entry.output for entry in verdict.comparisons} == {"y", "a (inner)"}
    findings, _ = run(CONSTANT, RENAMED.replace("Relu", "Abs"))
    assert findings.verdict("").kind is Kind.UNVERIFIED


def test_a_paired_value_that_the_claim_forgets_is_compared():
    findings = Findings(original_run(CONSTANT), Tolerance(), {})
    ResultRun(runnable(RENAMED), findings).run(lambda runs: runs[0].pop("b"))
    assert {entry.output for entry in findings.verdict("").comparisons} == {"y", "a (inner)"}


def test_another_number_of_inner_values_is_noted():
    two = """(float[1,4] x) => (float[1,4] y) { a = Relu(x) b = Abs(x)
        z = Sub(a, a) v = Sub(b, b) s = Add(z, v) y = Softmax(s) }"""
    findings, _ = run(CONSTANT, two)
    assert "do not correspond" in findings.notes[-1]


def test_a_result_that_does_not_run_raises_with_its_node():
    with pytest.raises(EvaluationError) as caught:
        run(RELU, net("(float[N,4] x) => (float[N,4] y) { [bad] y = Reshape(x, s) }", s=[5]))
    assert caught.value.node == "bad"


DOUBLE = runnable("(float[3] x) => (float[3] y, float[3] z) { y = Add (x, x) z = Relu (x) }")
OTHER = runnable("(float[3] x) => (float[3] y, float[3] z) { w = Add (x, x) y = Add (w, x) z = Relu (x) }")
LONGER = runnable(
    "(float[3] x) => (float[a] y, float[3] z) { w = Add (x, x) y = Concat <axis = 0> (w, x) z = Relu (x) }"
)
MINE = Feeds((Feed("mine", {"x": np.array([1, -4, 2], np.float32)}),))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (OTHER, Distance("y", 4.0, 12.0, original_scale=8.0)),
        (DOUBLE, Distance("y", 0.0, 8.0)),
        (LONGER, Distance("y", float("inf"), 0.0, reshaped=True)),
        (runnable("(float[3] x) => (float[3] y, float[3] z) { y = Missing (x) z = Relu (x) }"), None),
        (None, None),
    ],
    ids=["other", "same", "reshaped", "does not load", "none"],
)
def test_the_output_that_differs_most_for_its_size(other: Runnable | None, expected: Distance | None) -> None:
    found = verdict(DOUBLE, DOUBLE, other=other, input_data=MINE)

    assert found.kind is Kind.VERIFIED
    if expected is None or not expected.largest:
        assert (found.distance and found.distance.largest) == (expected and expected.largest)
    else:
        assert found.distance is not None
        assert replace(found.distance, metrics=()) == expected


def test_random_inputs_are_those_of_the_verification() -> None:
    found = verdict(DOUBLE, DOUBLE, other=OTHER).distance

    assert found is not None
    assert found.largest == pytest.approx(found.scale / 3)


@pytest.mark.parametrize(
    ("distance", "text"),
    [
        (Distance("y", 2.25, 3.789), "output 'y' differs by up to 59 % of its largest value"),
        (
            Distance("y", 2.25, 3.789, original_scale=4.5),
            "output 'y' differs by up to 50 % of its largest value",
        ),
        (Distance("y", 2.25, 0.0), "output 'y' differs by up to 2.25"),
        (Distance("y", 0.0, 3.8), "the outputs are the same on the inputs that were tried"),
        (
            Distance("y", 1.0, 0.0, reshaped=True),
            "output 'y' has another shape",
        ),
    ],
)
def test_as_text(distance: Distance, text: str) -> None:
    assert str(distance) == text


def test_a_crash_while_measuring_says_nothing_of_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    endings = [process.Crashed("SIGSEGV", stage=DISTANCE_STAGE), process.Returned(Verdict(Kind.VERIFIED))]
    given = []

    def run(_: str, task: object, **__: object) -> process.Ending:
        given.append(task.segment.other)  # type: ignore[attr-defined]
        return endings.pop(0)

    monkeypatch.setattr(process, "run", run)

    assert verdict(DOUBLE, DOUBLE, other=OTHER).kind is Kind.VERIFIED
    assert given == [OTHER, None]


@pytest.mark.parametrize(
    ("name", "corner", "expected"), [("normal", False, 3.0), ("wide", False, None), ("corners", True, None)]
)
def test_a_distance_is_that_on_ordinary_numbers(name, corner, expected):
    original = original_run(RELU)
    (values, *_), (feed, *_) = original.runs[original.first], original.feeds
    one = replace(original, feeds=[replace(feed, name=name, corner=corner)], runs={original.first: [values]})
    found = distance(one, runnable("(float[N,4] x) => (float[N,4] y) { a = Relu (x) y = Add (a, k) }", k=3.0))
    assert (found and found.largest) == (expected and pytest.approx(expected, rel=1e-6))


def test_nan_on_wide_numbers_counts():
    original = original_run(RELU)
    feed, values = original.feeds[0], original.runs[original.first][0]
    one = replace(original, feeds=[replace(feed, name="wide")], runs={original.first: [values]})
    found = distance(one, runnable("(float[N,4] x) => (float[N,4] y) { y = Sqrt (x) }"))
    assert found.problem == "NaN at different positions"
