"""The oracle equals ONNX Runtime bit for bit on a grid of nodes that both run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.harness import run
from tests.resize.grid import Point, grid, point_model
from tests.resize.oracle import Spec, index_map, resize


@pytest.fixture(scope="module")
def tie() -> float:
    """The distance from a half that the installed ONNX Runtime takes for a half: its issue 28291, 20 to 6."""
    spec = Spec(13, coordinates="half_pixel", nearest="round_prefer_ceil")
    x = np.arange(20, dtype=np.float32).reshape(1, 20)
    found = run(point_model(Point(spec, (1, 20), "float32", sizes=(1, 6))), {"x": x})[0]
    return 1e-6 if found[0, 4] == 15 else 0.0


def agree(point: Point, tie: float) -> None:
    x = point.feed()
    expected = run(point_model(point), {"x": x})[0]

    actual = resize(x, replace(point.spec, tie=tie), scales=point.scales, sizes=point.sizes)

    assert actual.dtype == expected.dtype, point
    np.testing.assert_array_equal(actual, expected, err_msg=str(point))


@pytest.mark.parametrize("seed", range(6))
def test_sample(seed: int, tie: float) -> None:
    for point in grid(50, seed):
        agree(point, tie)


@pytest.mark.campaign
def test_whole_grid(tie: float) -> None:
    for point in grid(12_000, 99):
        agree(point, tie)


@pytest.mark.campaign
@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn"]
)
def test_every_pair_of_lengths(coordinates: str, nearest: str, tie: float) -> None:
    spec = Spec(11, "nearest", coordinates, nearest, tie=tie)
    for length in range(1, 33):
        x = np.repeat(np.arange(length, dtype=np.float32)[:, None], 2, axis=1)
        for out in range(1, 33):
            agreed = run(point_model(Point(spec, (length, 2), "float32", sizes=(out, 2))), {"x": x})[0][:, 0]
            scale = np.float32(out) / np.float32(length)
            np.testing.assert_array_equal(
                agreed, index_map(spec, scale, length, out), err_msg=f"{length} to {out}"
            )


@pytest.mark.parametrize(
    ("version", "scale", "length", "indices"),
    [
        (9, 2.0, 3, [0, 0, 1, 1, 2, 2]),
        (9, 0.5, 6, [0, 2, 4]),  # Upsample always rounds down; computed by hand, since no runtime runs it
        (9, 0.6, 10, [0, 1, 3, 5, 6, 8]),
        (10, 0.6, 10, [0, 2, 4, 5, 7, 9]),
        (11, 0.6, 10, [0, 2, 4, 5, 7, 9]),
    ],
)
def test_index_map(version: int, scale: float, length: int, indices: list[int]) -> None:
    spec = Spec(version, coordinates="asymmetric", nearest="ceil")

    assert index_map(spec, scale, length, len(indices)).tolist() == indices
