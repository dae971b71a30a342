"""Results that do not load where the original does."""

from __future__ import annotations

import sys

import onnx
import onnxruntime
import pytest

from onnx_migrate import process
from onnx_migrate.process import Limits
from onnx_migrate.verdicts import Kind, LoadFailure
from onnx_migrate.verify import Runnable, Settings, load_check
from onnx_migrate.verify.load_check import check_loads
from onnx_migrate.verify.loading import load_failure
from tests.campaigns.hostile.growth import doubled_shapes_in_a_function
from tests.support.skips import Elsewhere, skip_if
from tests.verify.harness import RELU, net, verdict


def runnable(text, **options):
    return Runnable(structure=net(text, **options).SerializeToString())


BROKEN = "(float[N,4] x) => (float[N,4] y) { [bad] y = Concat<axis = 7>(x, x) }"
"""Shape inference, and so ONNX Runtime, refuses the axis."""

CUSTOM = "(float[N,4] x) => (float[N,4] y) { y = mine.Thing(x) }"

OPTIMISER_FAULT = """(float[1,4,4,3] x) => (float[1,3,4,4] y) <float s = {0.1}, int8 z = {1}> {
    q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) t = Transpose<perm=[0,3,1,2]>(d) y = Sigmoid(t) }"""
"""From opset 21 on ONNX Runtime 1.31 inserts a QuantizeLinear behind the Transpose that it then refuses itself."""


def test_what_loads_has_no_failure():
    assert load_failure(runnable(RELU), runnable(RELU, opset=21)) is None
    assert check_loads(runnable(RELU), runnable(RELU), Settings(isolated=False)) == (None, "")


def test_a_failure_has_the_node_and_the_words_of_the_runtime():
    failure = load_failure(runnable(RELU), runnable(BROKEN))
    assert (failure.node, failure.operator, failure.unoptimised, failure.limit) == (
        "bad",
        "Concat",
        False,
        False,
    )
    assert "axis must be in" in failure.reason


def test_what_the_original_does_not_do_is_not_asked_of_the_result():
    assert load_failure(runnable(CUSTOM), runnable(CUSTOM)) is None
    assert load_failure(runnable(BROKEN), runnable(BROKEN)) is None
    assert load_failure(None, runnable(BROKEN)) is not None


@skip_if(onnx.defs.onnx_opset_version() < 22, "onnx is older", Elsewhere.NEWEST)
def test_a_missing_kernel_is_a_limit_of_the_runtime_at_a_node_without_a_name():
    roi = """(float[1,2,8,8] x, float[3,4] r) => (float[3,2,2,2] y) <int64[3] b = {0,0,0}> {
        y = RoiAlign<output_height=2, output_width=2>(x, r, b) }"""
    failure = load_failure(runnable(roi, opset=16), runnable(roi, opset=22))
    assert (failure.node, failure.operator, failure.limit) == ("y", "RoiAlign", True)


@skip_if(
    not onnxruntime.__version__.startswith("1.31."),
    "the fault is that of one release's optimiser",
    Elsewhere.ONE_RELEASE,
)
def test_a_fault_of_the_optimiser():
    failure = load_failure(runnable(OPTIMISER_FAULT, opset=19), runnable(OPTIMISER_FAULT, opset=21))
    assert failure.unoptimised
    assert "does not match y_zero_point" in failure.reason


@pytest.mark.parametrize(
    ("ending", "failure", "doubt"),
    [
        (process.Crashed("SIGSEGV", stage="result: loading"), True, ""),
        (process.Crashed("SIGSEGV", stage="original: loading"), False, "is not known: the process crashed"),
        (process.TimedOut(3.0, stage="result: loading"), False, "is not known: timed out after 3 s"),
    ],
)
def test_a_process_that_ends(ending, failure, doubt, monkeypatch):
    monkeypatch.setattr(load_check.process, "run", lambda *_, **__: ending)
    found, unknown = check_loads(runnable(RELU), runnable(RELU), Settings())
    assert (found is not None) == failure
    assert (doubt in unknown) if doubt else unknown == ""


def test_the_check_runs_where_the_original_does_not():
    never = "(float[N,4] x) => (float[M] y) <int64[1] i = {9}, int64[1] m = {-1}> { f = Reshape(x, m) y = Gather(f, i) }"
    feeds_none = runnable(never.replace("[N,4]", "[1,4]"))
    same = verdict(feeds_none, feeds_none)
    assert (same.kind, same.load, same.comparable) == (Kind.UNVERIFIED, None, False)
    worse = never.replace("[N,4]", "[1,4]").replace(
        "f = Reshape(x, m)", "g = Concat<axis=7>(x) f = Reshape(g, m)"
    )
    found = verdict(feeds_none, runnable(worse))
    assert found.kind is Kind.DIFFERS
    assert isinstance(found.load, LoadFailure)


def test_the_check_runs_where_time_is_over(monkeypatch):
    real = process.run

    def run(function, *args, **options):
        return real(function, *args, **options) if function == load_check.LOADS else process.TimedOut(0.1)

    monkeypatch.setattr(process, "run", run)
    found = verdict(runnable(RELU), runnable(BROKEN), limits=Limits(seconds=60))
    assert found.kind is Kind.DIFFERS
    assert "does not load" in found.reason
    fine = verdict(runnable(RELU), runnable(RELU), limits=Limits(seconds=60))
    assert (fine.kind, fine.comparable) == (Kind.UNVERIFIED, False)
    assert "timed out after 0.1 s" in fine.reason


@pytest.mark.long
@skip_if(sys.platform != "linux", "RLIMIT_DATA covers mappings on Linux", Elsewhere.LINUX)
def test_loading_takes_no_more_than_its_share_of_the_memory():
    """ONNX Runtime follows the values of shapes as it loads: 2^40 numbers of functions that call each other."""
    large = Runnable(structure=doubled_shapes_in_a_function().SerializeToString())
    failure, doubt = check_loads(large, large, Settings(limits=Limits(memory=8 << 30)))
    assert failure is None
    assert "whether the result loads is not known: out of memory (limit 1." in doubt

    ending = process.run(
        "onnx_migrate.verify.loading:load_within_reason", large, large, limits=Limits(memory=8 << 30)
    )
    assert isinstance(ending, process.Returned), ending
    assert ending.value == (None, "whether the result loads is not known: loading takes more than 1.1 GB")
