"""Conv, ConvTranspose and DeformConv compute the same at every version; CausalConvWithState against onnx.reference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from onnx_migrate.errors import CannotMigrate
from tests.harness import VARIANTS, check, lift, make_variant, random_feeds, run
from tests.passes.steps.test_linear_attention import check as check_by_reference


@pytest.mark.parametrize(
    "attributes",
    [
        "",
        "<pads = [1, 1, 1, 1], strides = [2, 2]>",
        "<dilations = [2, 2]>",
        '<auto_pad = "SAME_UPPER", strides = [2, 2]>',
        '<auto_pad = "SAME_LOWER", strides = [2, 2]>',
        '<auto_pad = "VALID", kernel_shape = [3, 3]>',
    ],
)
def test_conv(attributes: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 7]>
        graph (float[1, 2, 6, 6] x, float[3, 2, 3, 3] w, float[3] b) => (float[n, c, h, v] y)
        {{ y = Conv {attributes} (x, w, b) }}"""
    check(source, to=11)


@pytest.mark.parametrize("pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize(
    "more", ["", ", output_shape = [8]", ", output_shape = [9]", ", output_padding = [1]"]
)
@pytest.mark.parametrize("kernel", [3, 4])
def test_conv_transpose(pad: str, more: str, kernel: int) -> None:
    """An odd pad goes to the same end at every version."""
    source = f"""<ir_version: 4, opset_import: ["": 7]>
        graph (float[1, 2, 4] x, float[2, 1, {kernel}] w) => (float[n, c, l] y)
        {{ y = ConvTranspose <strides = [2], auto_pad = "{pad}"{more}> (x, w) }}"""
    # ONNX Runtime infers another shape than it computes for this pair, which fails in an If.
    mismatch = pad.startswith("SAME") and "padding" in more
    check(source, to=11, variants=[variant for variant in VARIANTS if not (mismatch and variant == "if")])


def conv_transpose(opset: int, attributes: str, spatial: str = "3, 3") -> str:
    ranks = spatial.count(",") + 1
    kernel = ", ".join(["3"] * ranks)
    return f"""<ir_version: 4, opset_import: ["": {opset}]>
        graph (float[1, 2, {spatial}] x, float[2, 1, {kernel}] w)
            => (float[{", ".join("abcde"[: ranks + 2])}] y)
        {{ y = ConvTranspose <{attributes}> (x, w) }}"""


@pytest.mark.parametrize("strides", ["strides = [3, 2]", "strides = [3, 2], kernel_shape = [3, 3]"])
def test_output_shape_with_batch_and_channels(strides: str) -> None:
    """Current releases of ONNX Runtime refuse it: the expected values are those without batch and channels."""
    known = parser.parse_model(conv_transpose(7, f"{strides}, output_shape = [10, 8]"))
    source = parser.parse_model(conv_transpose(7, f"{strides}, output_shape = [1, 1, 10, 8]"))
    feeds = random_feeds(known)
    for variant in VARIANTS:
        variation, given = make_variant(source, variant, feeds)
        for target in (11, 26):
            result, _ = lift(variation, target)
            np.testing.assert_array_equal(run(result, given)[0], run(known, feeds)[0])


def test_output_shape_of_an_unknown_rank_is_refused() -> None:
    variation, _ = make_variant(
        parser.parse_model(conv_transpose(7, "output_shape = [1, 1, 5, 5]")), "unranked", {}
    )
    with pytest.raises(CannotMigrate) as error:
        lift(variation, 11)
    assert error.value.code == "needs-rank"


def test_output_shape_of_spatial_axes_is_unchanged() -> None:
    check(conv_transpose(7, "output_shape = [5, 5, 5]", "3, 3, 3"), to=11, refused={"unranked": "needs-rank"})


def test_deform_conv() -> None:
    source = """<ir_version: 9, opset_import: ["": 19]>
        graph (float[1, 1, 3, 3] x, float[1, 1, 2, 2] w, float[1, 8, 2, 2] offset) => (float[1, 1, 2, 2] y)
        { y = DeformConv <kernel_shape = [2, 2], pads = [0, 0, 0, 0]> (x, w, offset) }"""
    check(source, to=22, variants=["plain", "if", "function"])


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize("past", [True, False])
@pytest.mark.parametrize("kernel", [1, 3])
def test_causal_convolution(activation: str, past: bool, kernel: int) -> None:
    state = f", float[2,4,{kernel - 1}] p" if past else ""
    source = f"""<ir_version: 13, opset_import: ["": 27]> graph (float[2,4,5] x, float[4,1,{kernel}] w, float[4] b{state})
        => (float[2,4,5] y, float[2,4,{kernel - 1}] s)
        {{ y, s = CausalConvWithState<activation = "{activation}"> (x, w, b{", p" if past else ""}) }}"""
    unknown = {"symbolic": "needs-shape", "unranked": "needs-shape"}
    check_by_reference(source, 26, 17, 11, 9, refused=unknown)


def test_causal_convolution_of_half_floats() -> None:
    source = """<ir_version: 13, opset_import: ["": 27]>
        graph (float16[2,4,5] x, float16[4,1,3] w) => (float16[2,4,5] y, float16[2,4,2] s)
        { y, s = CausalConvWithState<activation = "silu"> (x, w) }"""
    check_by_reference(
        source, 26, 13, tolerance=5e-3, refused={"symbolic": "needs-shape", "unranked": "needs-shape"}
    )


def test_channels_of_fixed_weights_are_enough() -> None:
    source = """<ir_version: 13, opset_import: ["": 27]> graph (float[N,C,L] x) => (float[N,C,L] y, float[N,C,K] s)
        <float[3,1,2] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}> { y, s = CausalConvWithState (x, w) }"""
    check_by_reference(source, 26, 13, variants=("plain", "if"))
