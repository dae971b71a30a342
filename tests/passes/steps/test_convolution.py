"""Conv and ConvTranspose up; CausalConvWithState, DeformConv and Col2Im down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import VARIANTS, make_variant, model, random_feeds, run
from tests.passes.steps.test_linear_attention import check as check_by_reference
from tests.steps import check, check_down, lift, lower, refuses


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
    source = f"""7 (float[1, 2, 6, 6] x, float[3, 2, 3, 3] w, float[3] b) => (float[n, c, h, v] y)
        {{ y = Conv {attributes} (x, w, b) }}"""
    check(source, to=11)


@pytest.mark.parametrize("pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize(
    "more", ["", ", output_shape = [8]", ", output_shape = [9]", ", output_padding = [1]"]
)
@pytest.mark.parametrize("kernel", [3, 4])
def test_conv_transpose(pad: str, more: str, kernel: int) -> None:
    """An odd pad goes to the same end at every version."""
    source = f"""7 (float[1, 2, 4] x, float[2, 1, {kernel}] w) => (float[n, c, l] y)
        {{ y = ConvTranspose <strides = [2], auto_pad = "{pad}"{more}> (x, w) }}"""
    # ONNX Runtime infers another shape than it computes for this pair, which fails in an If.
    mismatch = pad.startswith("SAME") and "padding" in more
    check(source, to=11, variants=[variant for variant in VARIANTS if not (mismatch and variant == "if")])


def conv_transpose(opset: int, attributes: str, spatial: str = "3, 3") -> str:
    ranks = spatial.count(",") + 1
    kernel = ", ".join(["3"] * ranks)
    return f"""{opset} (float[1, 2, {spatial}] x, float[2, 1, {kernel}] w)
            => (float[{", ".join("abcde"[: ranks + 2])}] y)
        {{ y = ConvTranspose <{attributes}> (x, w) }}"""


@pytest.mark.parametrize("strides", ["strides = [3, 2]", "strides = [3, 2], kernel_shape = [3, 3]"])
def test_output_shape_with_batch_and_channels(strides: str) -> None:
    """Current releases of ONNX Runtime refuse it: the expected values are those without batch and channels."""
    known = model(conv_transpose(7, f"{strides}, output_shape = [10, 8]"))
    source = model(conv_transpose(7, f"{strides}, output_shape = [1, 1, 10, 8]"))
    feeds = random_feeds(known)
    for variant in VARIANTS:
        variation, given = make_variant(source, variant, feeds)
        for target in (11, 26):
            result, _ = lift(variation, target)
            np.testing.assert_array_equal(run(result, given)[0], run(known, feeds)[0])


def test_output_shape_of_an_unknown_rank_is_refused() -> None:
    variation, _ = make_variant(model(conv_transpose(7, "output_shape = [1, 1, 5, 5]")), "unranked", {})
    refuses("needs-rank", lift, variation, 11)


def test_output_shape_of_spatial_axes_is_unchanged() -> None:
    check(conv_transpose(7, "output_shape = [5, 5, 5]", "3, 3, 3"), to=11, refused={"unranked": "needs-rank"})


def test_deform_conv() -> None:
    source = """19 (float[1, 1, 3, 3] x, float[1, 1, 2, 2] w, float[1, 8, 2, 2] offset) => (float[1, 1, 2, 2] y)
        { y = DeformConv <kernel_shape = [2, 2], pads = [0, 0, 0, 0]> (x, w, offset) }"""
    check(source, to=22, variants=["plain", "if", "function"])


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize("past", [True, False])
@pytest.mark.parametrize("kernel", [1, 3])
def test_causal_convolution(activation: str, past: bool, kernel: int) -> None:
    state = f", float[2,4,{kernel - 1}] p" if past else ""
    source = f"""27 (float[2,4,5] x, float[4,1,{kernel}] w, float[4] b{state})
        => (float[2,4,5] y, float[2,4,{kernel - 1}] s)
        {{ y, s = CausalConvWithState<activation = "{activation}"> (x, w, b{", p" if past else ""}) }}"""
    unknown = {"symbolic": "needs-shape", "unranked": "needs-shape"}
    check_by_reference(source, 26, 17, 11, 9, refused=unknown)


def test_causal_convolution_of_half_floats() -> None:
    source = """27 (float16[2,4,5] x, float16[4,1,3] w) => (float16[2,4,5] y, float16[2,4,2] s)
        { y, s = CausalConvWithState<activation = "silu"> (x, w) }"""
    check_by_reference(
        source, 26, 13, tolerance=5e-3, refused={"symbolic": "needs-shape", "unranked": "needs-shape"}
    )


def test_channels_of_fixed_weights_are_enough() -> None:
    source = """27 (float[N,C,L] x) => (float[N,C,L] y, float[N,C,K] s)
        <float[3,1,2] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}> { y, s = CausalConvWithState (x, w) }"""
    check_by_reference(source, 26, 13, variants=("plain", "if"))


def deform_conv(
    attributes: str = "",
    *,
    groups: int = 1,
    group: int = 1,
    mask: bool = False,
    fed_weights: bool = False,
    size: str = "4, 5",
) -> str:
    extra = f", float[2, {groups * 6}, {size}] m" if mask else ""
    weights = ", ".join(str(round(0.1 * (i % 13) - 0.5, 2)) for i in range(6 * (4 // group) * 6))
    constant = (
        ""
        if fed_weights
        else f"<float[6, {4 // group}, 3, 2] w = {{{weights}}}, float[6] b = {{1, 2, 3, 4, 5, 6}}>"
    )
    inputs = f", float[6, {4 // group}, 3, 2] w, float[6] b" if fed_weights else ""
    return f"""19 (float[2, 4, 6, 6] x, float[2, {groups * 12}, {size}] o{extra}{inputs}) => (float[n, c, h, l] y) {constant} {{
          y = DeformConv <group = {group}, offset_group = {groups}{attributes}> (x, w, o, b{", m" if mask else ""})
        }}"""


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize("mask", [False, True])
def test_groups(mask: bool, group: int, groups: int) -> None:
    source = deform_conv(groups=groups, group=group, mask=mask)
    check_down(source, 18, 11, 9, rtol=1e-5, atol=1e-5, specials=False)


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        (", pads = [1, 0, 1, 0]", "6, 5"),
        (", strides = [2, 1]", "2, 5"),
        (", pads = [1, 2, 2, 1], strides = [2, 3], dilations = [2, 1]", "3, 3"),
    ],
)
def test_places(attributes: str, size: str) -> None:
    check_down(deform_conv(attributes, size=size, mask=True), 18, 13, rtol=1e-5, atol=1e-5, specials=False)


def test_weights_of_unknown_shape_are_refused() -> None:
    source: Any = deform_conv(fed_weights=True).replace("float[6, 4, 3, 2] w", "float[p, q, r, s] w")
    refuses("needs-shape", lower, source, 18)


def test_an_image_of_one_row() -> None:
    source = """19 (float[1, 1, 1, 4] x, float[1, 4, 1, 3] o) => (float[a, b, c, d] y)
        <float[1, 1, 1, 2] w = {1, 2}> { y = DeformConv (x, w, o) }"""
    rng = np.random.default_rng(0)
    feeds = {
        "x": rng.standard_normal((1, 1, 1, 4)).astype(np.float32),
        "o": rng.uniform(-1.5, 1.5, (1, 4, 1, 3)).astype(np.float32),
    }
    check_down(source, 18, 9, feeds=feeds, variants=("plain",), rtol=1e-5, atol=1e-5)


def col2im(
    image: list[int], block: list[int], blocks: int, attributes: str = "", *, fed: bool = False
) -> str:
    count, elements = len(image), int(np.prod(block))
    dims = ", ".join("abcde"[: count + 2])
    extra = f", int64[{count}] image" if fed else ""
    image_constant = "" if fed else f"int64[{count}] image = {{{str(image)[1:-1]}}}, "
    return f"""18 (float[2, {3 * elements}, {blocks}] x{extra}) => (float[{dims}] y)
        <{image_constant}int64[{count}] block = {{{str(block)[1:-1]}}}> {{ y = Col2Im {attributes} (x, image, block) }}"""


@pytest.mark.parametrize(
    ("image", "block", "blocks", "attributes"),
    [
        ([5, 5], [1, 5], 5, ""),
        ([5, 5], [2, 3], 12, ""),
        ([5, 6], [2, 3], 4, "<strides = [2, 3]>"),
        ([5, 5], [1, 5], 15, "<pads = [0, 1, 0, 1]>"),
        ([6, 6], [2, 2], 25, "<dilations = [1, 1], pads = [0, 0, 0, 0]>"),
        ([6, 6], [2, 2], 4, "<dilations = [1, 5], strides = [2, 1], pads = [1, 1, 0, 0]>"),
        ([7], [3], 4, "<strides = [2], pads = [1, 1]>"),
        ([3, 4, 5], [1, 2, 5], 9, ""),
    ],
)
def test_blocks(image: list[int], block: list[int], blocks: int, attributes: str) -> None:
    if "dilations = [1, 5]" in attributes:
        blocks = 3 * 2
    check_down(col2im(image, block, blocks, attributes), 17, 13, 9)
    check_down(col2im(image, block, blocks, attributes), 7, variants=("plain",))


def test_a_shape_at_run_time_is_refused() -> None:
    refuses("needs-constant", lower, col2im([5, 5], [1, 5], 5, fed=True), 17, match="image_shape")
