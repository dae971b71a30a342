"""Results that this release of ONNX Runtime does not support: onnx.reference runs them, or the verdict says why not."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.equivalence import segment_check
from tests.support.versions import RUNTIME
from tests.verify.harness import RELU, check, net

NEWER = 28
"""An opset that no ONNX Runtime before 1.32 runs; onnx must know it."""

newest_onnx = pytest.mark.skipif(
    onnx.defs.onnx_opset_version() < NEWER or RUNTIME >= (1, 32),
    reason="onnx is older, or ONNX Runtime is as new",
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
