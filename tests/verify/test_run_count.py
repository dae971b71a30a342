"""What a listener hears of the runs of a verification."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.process.child import call
from onnx_migrate.verdicts import Verdict
from onnx_migrate.verify.evaluators.interface import Evaluator
from onnx_migrate.verify.run_count import begin_run, expect_runs, run_each, start_count
from tests.verify.harness import RELU, net, prove, runnable, verdict


class Echo(Evaluator):
    """Returns what it is given."""

    def run(self, inputs):
        return dict(inputs)


def heard(function) -> list[str]:
    texts: list[str] = []
    call(function, (), {}, texts.append)
    return texts


def test_a_run_has_a_place_and_a_number_out_of_those_that_are_expected():
    def work():
        start_count(per_input=2)
        begin_run("input 1")
        expect_runs(1, inputs=1)
        assert list(run_each(Echo(), [{"x": 1}, {"x": 2}])) == [{"x": 1}, {"x": 2}]
        begin_run("inner values")
        begin_run("inner values")
        start_count()
        begin_run("input 1")

    assert heard(work) == [
        "input 1, run 1",
        "input 1 of 2, run 2 of 4",
        "input 2 of 2, run 3 of 4",
        "inner values, run 4 of 4",
        "inner values, run 5",
        "input 1, run 1",
    ]


def test_without_a_listener_nothing_is_said():
    assert list(run_each(Echo(), [{"x": 1}, {"x": 2}], only=[1])) == [{"x": 2}]


CHANGED = RELU.replace("y = Relu (x)", "a = Relu (x) y = Identity (a)")


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize(("result", "exact"), [(RELU, None), (RELU, RELU), (CHANGED, RELU)])
def test_the_runs_of_a_verification_are_as_many_as_were_expected(result, exact, isolated):
    texts: list[str] = []
    exact = exact and runnable(exact)
    found = verdict(runnable(RELU), runnable(result), exact=exact, isolated=isolated, listen=texts.append)
    assert isinstance(found, Verdict)
    count = len(texts)
    assert texts[-1] == f"input 2 of 2, run {count} of {count}"
    totals = [int(total) for text in texts for total in re.findall(r"run \d+ of (\d+)", text)]
    assert set(totals) == {count}, "the total does not change on the way"


def test_a_proof_at_other_sizes_says_at_which():
    texts: list[str] = []
    prove(net(RELU), {"N": 1}, listen=texts.append)
    assert texts[0] == "sizes N=1, run 1"
    assert any(text.startswith("sizes N=2, run ") for text in texts)
