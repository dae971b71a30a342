"""RoiAlign, GridSample and NonMaxSuppression."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import check


@pytest.mark.parametrize("mode", ["", ', mode = "avg"', ', mode = "max"'])
@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align(mode: str, ratio: int) -> None:
    source = f"""<ir_version: 5, opset_import: ["": 10]>
        graph (float[2, 3, 8, 8] x, float[3, 4] rois, int64[3] batch) => (float[3, 3, 2, 2] y)
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
    source = f"""<ir_version: 8, opset_import: ["": 16]>
        graph (float[2, 3, 8, 8] x, float[1, 4] rois, int64[1] batch) => (float[1, 3, 2, 2] y)
        {{ y = RoiAlign <output_height = 2, output_width = 2, coordinate_transformation_mode = "{mode}">
            (x, rois, batch) }}"""
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 8)).astype(np.float32)
    check(source, to=22, feeds={"x": x, "rois": np.array([[1, 1, 6, 5]], np.float32), "batch": np.array([1])})


@pytest.mark.parametrize("mode", ["", 'mode = "bilinear"', 'mode = "bicubic"', 'mode = "nearest"'])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [0, 1])
def test_grid_sample(mode: str, padding: str, align: int) -> None:
    attributes = f'{mode}{mode and ", "}padding_mode = "{padding}", align_corners = {align}'
    source = f"""<ir_version: 8, opset_import: ["": 16]>
        graph (float[1, 2, 4, 5] x, float[1, 3, 3, 2] grid) => (float[1, 2, 3, 3] y)
        {{ y = GridSample <{attributes}> (x, grid) }}"""
    rng = np.random.default_rng(0)
    grid = (rng.random((1, 3, 3, 2), np.float32) - 0.5) * 3
    check(source, to=20, feeds={"x": rng.standard_normal((1, 2, 4, 5)).astype(np.float32), "grid": grid})


@pytest.mark.parametrize("thresholds", ["", ", most", ", most, overlap", ", most, overlap, score"])
def test_non_max_suppression(thresholds: str) -> None:
    source = f"""<ir_version: 5, opset_import: ["": 10]>
        graph (float[1, 6, 4] boxes, float[1, 2, 6] scores) => (int64[n, 3] y)
        <int64[1] most = {{4}}, float[1] overlap = {{0.5}}, float[1] score = {{0.1}}>
        {{ y = NonMaxSuppression <center_point_box = 1> (boxes, scores{thresholds}) }}"""
    rng = np.random.default_rng(0)
    feeds = {"boxes": rng.random((1, 6, 4), np.float32) + 0.5, "scores": rng.random((1, 2, 6), np.float32)}
    check(source, to=11, feeds=feeds)
