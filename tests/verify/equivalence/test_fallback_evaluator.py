"""Results that ONNX Runtime is too old for: onnx.reference runs them, or the verdict says why not."""

from __future__ import annotations

import onnx
import pytest

from onnx_migrate.verify import Kind, Runnable, verify

NEWER = 28
"""An opset that no ONNX Runtime runs yet; onnx must know it."""


def runnable(text, opset, ir=8):
    return Runnable(structure=onnx.parser.parse_model(
        f'<ir_version: {ir}, opset_import: ["" : {opset}]> g {text}'
    ).SerializeToString())  # fmt: skip


def judge(before, after, **options):
    return verify(before, after, isolated=False, **options)


RELU = "(float[N,4] x) => (float[N,4] y) { y = Relu(x) }"
newest_onnx = pytest.mark.skipif(onnx.defs.onnx_opset_version() < NEWER, reason="onnx is older")


@newest_onnx
@pytest.mark.parametrize("ir", [8, 14])
def test_onnx_reference_runs_what_onnx_runtime_does_not(ir):
    before, after = runnable(RELU, 17), runnable(RELU, NEWER, ir)
    verdict = judge(before, after, exact=after)
    assert verdict.kind is Kind.VERIFIED, verdict.reason
    assert "onnx.reference" in verdict.evaluator
    assert verdict.exact is None
    assert any("ONNX Runtime does not run the result" in note for note in verdict.notes)
    assert judge(before, runnable(RELU.replace("Relu", "Abs"), NEWER, ir)).kind is Kind.DIFFERS


RESIZE = (
    """(float[1,1,4,4] x) => (float[1,1,8,8] y) <float[4] s = {1.0, 1.0, 2.0, 2.0}> { y = Resize(x, , s) }"""
)


@newest_onnx
def test_onnx_reference_is_not_asked_about_resize():
    verdict = judge(runnable(RESIZE, 17), runnable(RESIZE, NEWER))
    assert verdict.kind is Kind.UNVERIFIED
    assert "onnx.reference is wrong about" in verdict.reason


ROI_ALIGN = """(float[1,2,8,8] x, float[3,4] r) => (float[3,2,2,2] y) <int64[3] b = {0,0,0}> {
    y = RoiAlign<MODE output_height=2, output_width=2>(x, r, b) }"""


def test_a_version_without_a_kernel_is_a_limit_of_the_runtime():
    before = runnable(ROI_ALIGN.replace("MODE", ""), 10)
    half = 'coordinate_transformation_mode="half_pixel",'
    verdict = judge(
        before, runnable(ROI_ALIGN.replace("MODE", half.replace("half_pixel", "output_half_pixel")), 22)
    )
    assert verdict.kind is Kind.VERIFIED, verdict.reason
    assert "RoiAlign(22)" in verdict.notes[-1]
    # onnx.reference takes half_pixel in the original too, which opset 10 did not have.
    verdict = judge(before, runnable(ROI_ALIGN.replace("MODE", half), 22))
    assert (verdict.kind, "of another mind" in verdict.reason) == (Kind.UNVERIFIED, True)


def test_an_operator_that_onnx_does_not_have_is_no_limit_of_the_runtime():
    verdict = judge(runnable(RELU, 17), runnable(RELU.replace("Relu", "Rela"), 17))
    assert verdict.kind is Kind.DIFFERS
    assert "the result does not load" in verdict.reason


@newest_onnx
def test_types_that_no_schema_allows_differ():
    wrong = "(float[N,4] x) => (float[N,4] y) { i = Cast<to=9>(x) a = Relu(i) y = Cast<to=1>(a) }"
    verdict = judge(runnable(RELU, 17), runnable(wrong, NEWER))
    assert verdict.kind is Kind.DIFFERS
    assert "Relu" in verdict.reason
