"""Verifications whose child ends early, and results that only onnx.reference runs."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace

import onnx
import pytest

from onnx_migrate import process
from onnx_migrate.errors import UsageError
from onnx_migrate.verdicts import Kind
from onnx_migrate.verify import Feed, Feeds
from onnx_migrate.verify.equivalence import segment_check
from onnx_migrate.verify.equivalence.check import check as check_in_child
from onnx_migrate.verify.equivalence.stages import BRANCHES_STAGE, CORNERS_STAGE, OPTIMISED_STAGE
from onnx_migrate.verify.equivalence.task import CHECK
from tests.support.skips import Elsewhere, skip_if
from tests.support.versions import RUNTIME
from tests.verify.harness import RELU, check, net, runnable, verdict


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


def test_an_original_that_crashes_with_optimisation_is_run_without(monkeypatch):
    """As silero-vad does with a fixed sampling rate and fixed dims in ONNX Runtime 1.32."""
    crash = process.Crashed("SIGSEGV", stage=OPTIMISED_STAGE)
    run, endings = process.run, [crash]
    monkeypatch.setattr(
        process, "run", lambda *given, **how: endings.pop() if endings else run(*given, **how)
    )
    found = verdict(runnable(RELU), runnable(RELU), isolated=True)
    assert found.kind is Kind.VERIFIED
    assert any("without optimisation only" in note and "crashed (SIGSEGV)" in note for note in found.notes)
    endings.append(crash)
    choice = runnable("""(bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = a () => (float[2] p) { p = Relu (x) }, else_branch = b () => (float[2] q) { q = Abs (x) }> }""")
    endings.append(process.Crashed("SIGSEGV", stage=BRANCHES_STAGE))
    endings.reverse()
    found = verdict(choice, choice, isolated=True)
    assert found.kind is Kind.VERIFIED
    assert (
        "which branches and bodies of loops were run is not known: the process crashed (SIGSEGV)"
        in found.notes
    )
    endings.append(crash)
    leaky = runnable(RELU.replace("Relu", "LeakyRelu"))
    assert verdict(runnable(RELU), leaky, isolated=True).kind is Kind.DIFFERS


def test_running_out_of_time_is_unverified():
    found = verdict(runnable(RELU), runnable(RELU), limits=process.Limits(seconds=0.01), isolated=True)
    assert found.kind is Kind.UNVERIFIED
    assert "timed out after" in found.reason
    assert "--timeout" in found.reason


@pytest.mark.parametrize("sent", ["SIGTERM", "SIGINT", "SIGKILL"])
def test_a_signal_from_outside_says_nothing_of_the_model(monkeypatch, sent):
    monkeypatch.setattr(process, "run", lambda *_, **__: process.Crashed(sent, stage="result: running"))
    found = verdict(runnable(RELU), runnable(RELU), isolated=True)
    assert found.kind is Kind.UNVERIFIED
    assert f"the process was ended from outside ({sent})" in found.reason


@skip_if(sys.platform != "linux", "the crash is of x86 Linux", Elsewhere.LINUX)
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


@skip_if(sys.platform != "linux", "limits of memory", Elsewhere.LINUX)
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
    assert found.reason.endswith("; not tried: --memory-limit allows more memory")
    assert found.comparable == (other == LAVISH)


NEWER = 28
"""An opset that no ONNX Runtime before 1.32 runs; onnx must know it."""

newest_onnx = skip_if(
    onnx.defs.onnx_opset_version() < NEWER or RUNTIME >= (1, 32),
    "onnx is older, or ONNX Runtime is as new",
    Elsewhere.ONE_RELEASE,
)


@newest_onnx
@pytest.mark.parametrize("ir", [8, 14])
def test_onnx_original_runs_what_onnx_runtime_does_not(ir):
    after = net(RELU, opset=NEWER, ir=ir)
    found = check(RELU, after, Kind.VERIFIED, exact=after)
    assert "onnx.reference" in found.evaluator
    assert found.exact is None
    assert any("bit-identity is required, but was not checked" in note for note in found.notes)
    assert any("does not support the result" in note for note in found.notes)
    check(RELU, net(RELU.replace("Relu", "Abs"), opset=NEWER, ir=ir), Kind.DIFFERS, "output 'y'")


@newest_onnx
def test_onnx_reference_does_not_run_resize():
    resize = (
        "(float[1,1,4,4] x) => (float[1,1,8,8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> { y = Resize(x, , s) }"
    )
    check(resize, net(resize, opset=NEWER), Kind.UNVERIFIED, "computes Resize wrongly")


ROI_ALIGN = """(float[1,2,8,8] x, float[3,4] r) => (float[3,2,2,2] y) <int64[3] b = {0,0,0}> {
    y = RoiAlign<MODE output_height=2, output_width=2>(x, r, b) }"""


def roi_align(mode, opset):
    attribute = f'coordinate_transformation_mode="{mode}",' if mode else ""
    return net(ROI_ALIGN.replace("MODE", attribute), opset=opset)


def test_an_operator_version_without_a_kernel_is_a_limit_of_the_runtime():
    found = check(roi_align("", 10), roi_align("output_half_pixel", 22), Kind.VERIFIED)
    assert "RoiAlign(22)" in found.notes[-1]
    assert not any("bit-identity" in note for note in found.notes), "identity was not claimed"


def test_a_result_of_which_onnx_infers_nothing_is_unverified(monkeypatch):
    """ONNX Runtime does not support its version, and an error that is no InferenceError does not say that it is wrong."""

    def fail(*_given, **_named):
        raise ValueError("no shapes")

    monkeypatch.setattr(segment_check.onnx.shape_inference, "infer_shapes", fail)
    check(
        roi_align("", 10),
        roi_align("output_half_pixel", 22),
        Kind.UNVERIFIED,
        "infers no shapes of it: no shapes",
    )


def test_a_difference_is_not_believed_where_onnx_reference_is_wrong_about_the_original():
    """It takes half_pixel in the original too, which opset 10 did not have."""
    check(roi_align("", 10), roi_align("half_pixel", 22), Kind.UNVERIFIED, "so does the original itself")


def test_an_operator_that_onnx_does_not_have_is_no_limit_of_the_runtime():
    check(RELU, RELU.replace("Relu", "Rela"), Kind.DIFFERS, "the result does not load")


@newest_onnx
def test_types_that_no_schema_allows_differ():
    wrong = "(float[N,4] x) => (float[N,4] y) { i = Cast<to=9>(x) a = Relu(i) y = Cast<to=1>(a) }"
    check(RELU, net(wrong, opset=NEWER), Kind.DIFFERS, "Relu")


@newest_onnx
def test_one_feed_is_enough_where_onnx_reference_is_slow(monkeypatch):
    monkeypatch.setattr(segment_check, "_REFERENCE_PATIENCE", -1.0)
    seen = []
    compare = segment_check.Findings.compare
    monkeypatch.setattr(
        segment_check.Findings, "compare", lambda *args: (seen.append(args[2]), compare(*args))
    )
    check(RELU, net(RELU, opset=NEWER), Kind.VERIFIED)
    assert seen == [0]


@pytest.mark.parametrize("how", [process.Crashed("SIGFPE"), process.OutOfMemory(1 << 30)])
def test_a_process_that_ends_on_corner_inputs_is_run_without_them(monkeypatch, how):
    calls, own = [], process.run

    def run(*args, **options):
        calls.append(args[1].ended)
        return own(*args, **options) if calls[-1] else replace(how, stage=CORNERS_STAGE)

    monkeypatch.setattr(process, "run", run)
    found = verdict(runnable(RELU), runnable(RELU), isolated=True)
    assert found.kind is Kind.VERIFIED
    assert [feed.name for feed in found.feeds] == ["normal", "wide"]
    assert any(note.startswith("corner inputs were not used: on one of them, ") for note in found.notes)
