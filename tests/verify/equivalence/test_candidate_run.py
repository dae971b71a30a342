"""A result is run in every configuration of the original's run, and its inner values are paired."""

from __future__ import annotations

import pytest

from onnx_migrate.verify import Kind, Tolerance
from onnx_migrate.verify.equivalence.candidate_run import CandidateRun
from onnx_migrate.verify.equivalence.findings import Findings
from onnx_migrate.verify.evaluators import EvaluationError
from tests.verify.harness import RELU, ULP, net, reference_run, runnable

CONSTANT = "(float[1,4] x) => (float[1,4] y) { a = Relu(x) z = Sub(a, a) y = Softmax(z) }"


def run(before, after, *, exact=False):
    findings = Findings(reference_run(before), Tolerance(), {})
    candidate = CandidateRun(runnable(after), net(after), findings)
    candidate.run(findings.compare_bits if exact else None)
    return findings, candidate


def test_every_configuration_and_feed_is_compared(monkeypatch):
    seen = []
    compare = Findings.compare
    monkeypatch.setattr(Findings, "compare", lambda *args: (seen.append(args[1:3]), compare(*args)))
    findings, candidate = run(RELU, RELU)
    assert seen == [
        (level, index) for level in findings.reference.runs for index in range(len(findings.reference.feeds))
    ]
    assert candidate.evaluator.startswith("onnxruntime ")


def test_bits_are_compared_only_where_identity_is_claimed():
    add = "(float[N,4] x) => (float[N,4] y) { y = Add(x, b) }"
    before, rounded = net(add, b=1.0), net(add, b=1 + ULP)
    assert run(before, rounded)[0].exact is None
    findings, _ = run(before, rounded, exact=True)
    assert findings.exact is False
    assert run(before, before, exact=True)[0].exact is True


def test_inner_values_are_paired_by_their_position_upstream():
    renamed = CONSTANT.replace("a = ", "b = ").replace("(a, a)", "(b, b)")
    findings, _ = run(CONSTANT, renamed)
    verdict = findings.verdict("")
    assert verdict.kind is Kind.VERIFIED
    assert {entry.output for entry in verdict.comparisons} == {"y", "a (inner)"}
    findings, _ = run(CONSTANT, renamed.replace("Relu", "Abs"))
    assert findings.verdict("").kind is Kind.UNVERIFIED


def test_a_paired_value_that_the_claim_forgets_is_compared():
    renamed = CONSTANT.replace("a = ", "b = ").replace("(a, a)", "(b, b)")
    findings = Findings(reference_run(CONSTANT), Tolerance(), {})
    CandidateRun(runnable(renamed), net(renamed), findings).run(lambda runs: runs[0].pop("b"))
    assert {entry.output for entry in findings.verdict("").comparisons} == {"y", "a (inner)"}


def test_another_number_of_inner_values_is_noted():
    two = """(float[1,4] x) => (float[1,4] y) { a = Relu(x) b = Abs(x)
        z = Sub(a, a) v = Sub(b, b) s = Add(z, v) y = Softmax(s) }"""
    findings, _ = run(CONSTANT, two)
    assert "cannot be paired" in findings.notes[-1]


def test_a_result_that_does_not_run_raises_with_its_node():
    with pytest.raises(EvaluationError) as caught:
        run(RELU, net("(float[N,4] x) => (float[N,4] y) { [bad] y = Reshape(x, s) }", s=[5]))
    assert caught.value.node == "bad"
