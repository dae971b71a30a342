"""Where a Resize samples along one axis, compared with ONNX Runtime's results."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx_migrate.passes.resize.lowered import sampling

from tests.harness import run
from tests.passes.lowerings.test_resize import KINDS, ROUNDINGS, resize


def axis(length: int, size: int) -> sampling.Axis:
    whole = (np.zeros(1, np.float32), np.ones(1, np.float32))
    scale = np.array([np.float32(size) / np.float32(length)], np.float32)
    return sampling.Axis(0, np.array([length], np.int64), np.array([size], np.int64), scale, whole)


def modes(mode: str, kind: str, rounding: str = "floor", *, antialias: bool = False) -> sampling.Modes:
    return sampling.Modes(mode, kind, rounding, -0.75, False, 0.0, antialias)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_nearest(kind: str, rounding: str) -> None:
    if (kind, rounding) == ("asymmetric", "round_prefer_ceil") and ort.__version__.startswith("1.21."):
        pytest.skip("ONNX Runtime 1.21 takes another element at halves")
    f = sampling._Constants()
    for length in (2, 3, 7):
        for size in (1, 2, 4, 5, 9, 14):
            if length == size:
                continue
            proto = resize(
                (length,), sizes=[size], coordinate_transformation_mode=kind, nearest_mode=rounding
            )
            (expected,) = run(proto, {"x": np.arange(length, dtype=np.float32)})
            at = sampling.coordinates(f, axis(length, size), kind)
            np.testing.assert_array_equal(sampling.nearest(f, axis(length, size), at, rounding), expected)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_weights_of_antialias_add_up_to_one(mode: str) -> None:
    for length, size in ((9, 4), (11, 5), (7, 3)):
        samples = sampling.antialiased(axis(length, size), modes(mode, "half_pixel", antialias=True))
        total = np.sum([weights for _, weights in samples], axis=0)
        np.testing.assert_allclose(total, np.ones(size), rtol=1e-6)
        assert all(((places >= 0) & (places < length)).all() for places, _ in samples)
