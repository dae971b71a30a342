"""How the child process of a verification ends, and what the parent makes of it."""

from __future__ import annotations

import importlib
import sys

import pytest

from onnx_migrate import process
from onnx_migrate.errors import UsageError
from onnx_migrate.verdicts import Kind
from onnx_migrate.verify import Feed, Feeds
from onnx_migrate.verify.equivalence.check import CHECK
from onnx_migrate.verify.equivalence.check import check as check_in_child
from tests.verify.harness import RELU, runnable, verdict


def test_the_name_of_the_function_that_the_child_runs_resolves():
    module, _, name = CHECK.partition(":")
    assert getattr(importlib.import_module(module), name) is check_in_child


def test_wrong_input_data_is_an_error_of_usage_from_the_child_process_too():
    with pytest.raises(UsageError, match="'x'"):
        verdict(runnable(RELU), runnable(RELU), input_data=Feeds((Feed("mine", {}),)), isolated=True)


@pytest.mark.parametrize(
    ("stage", "kind"), [("result: running, onnxruntime:off", "differs"), ("original: running", "unverified")]
)
def test_a_crash_counts_against_the_model_that_ran(monkeypatch, stage, kind):
    monkeypatch.setattr(process, "run", lambda *_, **__: process.Crashed("SIGSEGV", stage=stage))
    found = verdict(runnable(RELU), runnable(RELU), isolated=True)
    assert (found.kind, found.reason) == (kind, f"the process crashed (SIGSEGV), in the step '{stage}'")


def test_running_out_of_time_is_unverified():
    found = verdict(runnable(RELU), runnable(RELU), limits=process.Limits(seconds=0.01), isolated=True)
    assert found.kind is Kind.UNVERIFIED
    assert "not done after" in found.reason
    assert "--timeout" in found.reason


@pytest.mark.parametrize("sent", ["SIGTERM", "SIGINT", "SIGKILL"])
def test_a_signal_from_outside_says_nothing_of_the_model(monkeypatch, sent):
    monkeypatch.setattr(process, "run", lambda *_, **__: process.Crashed(sent, stage="result: running"))
    found = verdict(runnable(RELU), runnable(RELU), isolated=True)
    assert found.kind is Kind.UNVERIFIED
    assert f"the process was ended from outside ({sent})" in found.reason


@pytest.mark.skipif(sys.platform != "linux", reason="the crash is of x86 Linux")
def test_after_a_crash_on_one_length_others_are_tried():
    """ONNX Runtime divides integers by zero, which ends the process, at length 7: the first that is tried."""
    divides = runnable("""(float[N,T] x) => (float[N,T] y, int64[1] z)
      <int64[1] one = {1}, int64[1] two = {2}, int64[1] seven = {7}, int64[1] many = {100}> {
      s = Shape (x) t = Slice (s, one, two) d = Sub (t, seven) z = Div (many, d) y = Relu (x) }""")
    found = verdict(divides, divides, isolated=True)
    assert found.kind is Kind.VERIFIED
    assert 7 not in dict(found.feeds[0].shapes)["x"][1:]


FRUGAL = "(float[1024] x) => (float[1024] y) { y = Abs (x) }"
LAVISH = """(float[1024] x) => (float[1024] y) <int64[2] shape = {100000, 1024}, int64[1] axis = {0}> {
    e = Expand (x, shape) a = Abs (e) y = ReduceMax <keepdims = 0> (a, axis) }"""
"""The same numbers, by way of 400 MB."""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
@pytest.mark.parametrize("strict", [False, True], ids=["rounding", "exact"])
@pytest.mark.parametrize(
    ("one", "other", "step"), [(FRUGAL, LAVISH, "result: running"), (LAVISH, FRUGAL, "original: running")]
)
def test_a_lack_of_memory_says_nothing_of_the_numbers(one, other, step, strict):
    """Of the result alone, or of the original alone."""
    given = [runnable(text, opset=18) for text in (one, other)]
    found = verdict(
        *given,
        exact=given[1] if strict else None,
        strict=strict,
        limits=process.Limits(60.0, 400 << 20),
        isolated=True,
    )
    assert found.kind is Kind.UNVERIFIED
    assert found.reason.startswith("out of memory (limit 0.39 GB): ")
    assert f"in the step '{step}" in found.reason
    assert found.reason.endswith("; --memory-limit allows more memory")
    assert found.comparable == (other == LAVISH)
