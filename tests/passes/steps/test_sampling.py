"""GridSample, AffineGrid, RoiAlign and NonMaxSuppression, up and down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto
from onnx_migrate.passes.steps.image_sampling import SampledAxis, Sampler

from onnx_migrate.engine.steps.formula import Op, Value
from tests.harness import run, same_bits
from tests.steps import check, check_down, lower, refuses
from tests.support.written import Written

UNRANKED = {"unranked": "needs-rank"}
PADDINGS = ("zeros", "border", "reflection")


def grid_sample(
    mode: str, padding: str, corners: int, *, opset: int, spatial: str = "5, 6", dtype: str = "float"
) -> str:
    count = spatial.count(",") + 1
    points = ", ".join("346"[:count])
    dims = ", ".join("abcde"[: count + 2])
    return f"""{opset} ({dtype}[2, 3, {spatial}] x, {dtype}[2, {points}, {count}] grid) => ({dtype}[{dims}] y) {{
          y = GridSample <mode = "{mode}", padding_mode = "{padding}", align_corners = {corners}> (x, grid)
        }}"""


def feeds(spatial: tuple[int, ...] = (5, 6), dtype: Any = np.float32, wide: float = 1.3) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    points = (3, 4, 6)[: len(spatial)]
    return {
        "x": rng.standard_normal((2, 3, *spatial)).astype(dtype),
        "grid": (rng.uniform(-1, 1, (2, *points, len(spatial))) * wide).astype(dtype),
    }


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
def test_grid_sample_20(mode: str, padding: str, corners: int) -> None:
    source = grid_sample(mode, padding, corners, opset=20)
    check_down(source, 19, 16, refused=UNRANKED, feeds=feeds())


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_16(mode: str, padding: str, corners: int) -> None:
    source = grid_sample(mode, padding, corners, opset=16)
    check_down(source, 15, 11, 9, refused=UNRANKED, feeds=[feeds(wide=1.3), feeds(wide=8)])


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_three_spatial_axes(mode: str, padding: str, corners: int) -> None:
    source = grid_sample(mode, padding, corners, opset=20, spatial="4, 5, 6")
    check_down(source, 19, 13, 9, refused=UNRANKED, feeds=feeds((4, 5, 6)))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_float16(mode: str) -> None:
    source = grid_sample(mode, "zeros", 0, opset=16, dtype="float16")
    check_down(source, 15, feeds=feeds(dtype=np.float16), variants=("plain",))


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_double(mode: str) -> None:
    source = grid_sample(mode, "zeros", 0, opset=20, dtype="double", spatial="4, 5, 6")
    check_down(source, 19, 13, feeds=feeds((4, 5, 6), dtype=np.float64), variants=("plain",))


def test_specials_of_the_image() -> None:
    given = feeds()
    given["x"][0, 0, 2, 3] = np.inf
    given["x"][0, 1, 1, 1] = np.nan
    given["x"][1] = -0.0
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in PADDINGS:
            check_down(grid_sample(mode, padding, 0, opset=16), 15, 9, feeds=given, variants=("plain",))


def test_a_grid_that_is_not_finite() -> None:
    given = feeds()
    given["grid"][0, 0, 0] = np.nan
    given["grid"][0, 0, 1] = np.inf
    given["grid"][0, 0, 2, 0] = 1e30
    for mode in ("bilinear", "nearest", "bicubic"):
        for padding in PADDINGS:
            (result,) = run(
                lower(grid_sample(mode, padding, 0, opset=16), 15)[0], given
            )  # no index is out of range
            assert result.shape == (2, 3, 3, 4)


def affine_grid(corners: int, size: str, count: int, dtype: str = "float") -> str:
    dims = ", ".join("abcde"[: count + 2])
    return f"""20 ({dtype}[2, {count}, {count + 1}] theta{"" if size else f", int64[{count + 2}] size"}) => ({dtype}[{dims}] y)
        {f"<int64[{count + 2}] size = {{{size}}}>" if size else ""} {{
          y = AffineGrid <align_corners = {corners}> (theta, size)
        }}"""


@pytest.mark.parametrize("corners", [0, 1])
@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("sizes", [[2, 3, 5, 6], [2, 3, 1, 4], [2, 1, 4, 5, 6]])
def test_affine_grid(sizes: list[int], fed: bool, corners: int) -> None:
    count = len(sizes) - 2
    theta = np.random.default_rng(0).standard_normal((2, count, count + 1)).astype(np.float32)
    source = affine_grid(corners, "" if fed else str(sizes)[1:-1], count)
    given: dict[str, Any] = {"theta": theta}
    if fed:
        given["size"] = np.array(sizes, np.int64)
    refused = {"unranked": "needs-shape", "symbolic": "needs-shape"} if fed else None
    check_down(source, 19, 11, 9, feeds=given, refused=refused, rtol=1e-6, atol=1e-6)


def roi_align(mode: str, rois: str) -> str:
    return f"""16 (float[1, 2, 8, 8] x{"" if rois else ", float[2, 4] rois"}) => (float[a, b, c, d] y)
        <int64[2] batch = {{0, 0}}{f", float[2, 4] rois = {{{rois}}}" if rois else ""}> {{
          y = RoiAlign <{mode} spatial_scale = 0.5, output_height = 3, output_width = 2, sampling_ratio = 2> (x, rois, batch)
        }}"""


def test_roi_align() -> None:
    wide = "1, 2, 9, 7, 0, 4, 12, 11"
    old = 'coordinate_transformation_mode = "output_half_pixel",'
    x = {"x": np.random.default_rng(0).standard_normal((1, 2, 8, 8)).astype(np.float32)}
    rois = np.array([[1, 2, 9, 7], [0, 4, 12, 11]], np.float32)
    check_down(roi_align(old, ""), 15, 10, feeds={**x, "rois": rois})
    check_down(roi_align("", wide), 15, 10, feeds=x, rtol=1e-6, atol=1e-6)
    for source, code in (
        (roi_align("", ""), "needs-constant"),
        (roi_align("", "1, 2, 9, 7, 0, 4, 1, 11"), "no-equal"),
    ):
        refuses(code, lower, source, 15)


def test_output_half_pixel_is_the_old_one() -> None:
    """The default is half_pixel: dropping the attribute would be seen."""
    source = roi_align('coordinate_transformation_mode = "output_half_pixel",', "1, 2, 2, 7, 0, 4, 12, 11")
    given = {"x": np.random.default_rng(0).standard_normal((1, 2, 8, 8)).astype(np.float32)}
    same_bits(run(lower(source, 16)[0], given), run(lower(source, 10)[0], given), "old mode")


@pytest.mark.parametrize(
    ("source", "to", "words"),
    [
        ("20 (uint8[n] x) => (uint8[h, w, c] y) { y = ImageDecoder (x) }", 19, "decodes images"),
        (
            "10 (float[1, n, 4] b, float[1, c, n] s) => (int64[m, 3] y) { y = NonMaxSuppression (b, s) }",
            9,
            "overlap",
        ),
        (
            "10 (float[1, 1, 4, 4] x, float[1, 4] r, int64[1] b) => (float[k, c, h, w] y) { y = RoiAlign (x, r, b) }",
            9,
            "regions",
        ),
    ],
)
def test_refused(source: str, to: int, words: str) -> None:
    refuses("no-equal", lower, source, to, match=words)


@pytest.mark.parametrize("mode", ["", ', mode = "avg"', ', mode = "max"'])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align_up(mode: str, ratio: int) -> None:
    source = f"""10 (float[2, 3, 8, 8] x, float[3, 4] rois, int64[3] batch) => (float[3, 3, 2, 2] y)
        {{ y = RoiAlign <output_height = 2, output_width = 2, spatial_scale = 0.5,
               sampling_ratio = {ratio}{mode}>
           (x, rois, batch) }}"""
    feeds = {
        "x": np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32),
        "rois": np.array([[0, 0, 7, 9], [3.3, 2.1, 14, 12.5], [4, 4, 4.2, 4.1]], np.float32),
        "batch": np.array([0, 1, 1]),
    }
    check(source, to=16, feeds=feeds)


@pytest.mark.parametrize("mode", ["output_half_pixel", "half_pixel"])
def test_roi_align_of_16(mode: str) -> None:
    source = f"""16 (float[2, 3, 8, 8] x, float[1, 4] rois, int64[1] batch) => (float[1, 3, 2, 2] y)
        {{ y = RoiAlign <output_height = 2, output_width = 2, coordinate_transformation_mode = "{mode}">
            (x, rois, batch) }}"""
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    check(source, to=22, feeds={"x": x, "rois": np.array([[1, 1, 6, 5]], np.float32), "batch": np.array([1])})


@pytest.mark.parametrize("mode", ["", 'mode = "bilinear"', 'mode = "bicubic"', 'mode = "nearest"'])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(mode: str, padding: str, align: int) -> None:
    attributes = f'{mode}{mode and ", "}padding_mode = "{padding}", align_corners = {align}'
    source = f"""16 (float[1, 2, 4, 5] x, float[1, 3, 3, 2] grid) => (float[1, 2, 3, 3] y)
        {{ y = GridSample <{attributes}> (x, grid) }}"""
    rng = np.random.default_rng(0)
    grid = (rng.random((1, 3, 3, 2), np.float32) - 0.5) * 3
    check(source, to=20, feeds={"x": rng.standard_normal((1, 2, 4, 5)).astype(np.float32), "grid": grid})


@pytest.mark.parametrize("thresholds", ["", ", most", ", most, overlap", ", most, overlap, score"])
def test_non_max_suppression(thresholds: str) -> None:
    source = f"""10 (float[1, 6, 4] boxes, float[1, 2, 6] scores) => (int64[n, 3] y)
        <int64[1] most = {{4}}, float[1] overlap = {{0.5}}, float[1] score = {{0.1}}>
        {{ y = NonMaxSuppression <center_point_box = 1> (boxes, scores{thresholds}) }}"""
    rng = np.random.default_rng(0)
    feeds = {"boxes": rng.random((1, 6, 4), np.float32) + 0.5, "scores": rng.random((1, 2, 6), np.float32)}
    check(source, to=11, feeds=feeds)


AT = np.array([-1.5, -1.0, -0.25, 0.0, 0.5, 1.75, 2.0, 2.5, 3.0], np.float32)
LINE = np.array([1.0, 3.0, 7.0], np.float32)


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        ("zeros", [0, 0, 0.75, 1, 2, 6, 7, 3.5, 0]),
        ("border", [1, 1, 1, 1, 2, 6, 7, 7, 7]),
        ("reflection", [2, 1, 1, 1, 2, 6, 7, 7, 7]),
    ],
)
def test_linear_along_one_axis(monkeypatch: pytest.MonkeyPatch, padding: str, expected: list[float]) -> None:
    def build(op: Op, x: Value) -> Value:
        rows = op.constant(LINE[:, None])
        sampler = Sampler(op, TensorProto.FLOAT, rows, rank=2, padding=padding, by_corner=False)
        sampler.axes.append(SampledAxis(x.reshape(-1, 1), op.constant(sampler.number(2)), None))
        return sampler.linear()

    found = Written(monkeypatch).run(build, AT, 12, 11, static=True)
    np.testing.assert_allclose(found.reshape(-1), expected)
