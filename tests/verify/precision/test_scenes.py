"""Scenes: inputs like images and sounds of real use, which the error of a result is measured on, too."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify import Runnable, Settings
from onnx_migrate.verify.precision import reference
from onnx_migrate.verify.precision.reference import reference_of
from onnx_migrate.verify.precision.run_time import affordable, seconds_of_run
from onnx_migrate.verify.precision.scenes import SCENE, scene
from tests.harness import model


@pytest.mark.parametrize(
    ("shape", "image"),
    [((1, 3, 64, 96), True), ((1, 64, 96, 3), True), ((1, 4000), True), ((1, 8), False), ((64,), False)],
)
def test_images_and_sounds_get_print_a_ramp_dots_and_flat_areas(shape: tuple[int, ...], image: bool) -> None:
    found = scene({"x": np.zeros(shape, np.float32), "n": np.ones(3, np.int64)}, 0)

    if not image:
        assert found is None
        return
    assert found is not None
    values = found["x"]
    assert values.dtype == np.float32
    assert values.shape == shape
    assert -1 <= values.min() < -0.9
    assert 0.8 < values.max() <= 1
    middle = np.mean(np.abs(values) < 0.5)
    assert 0.02 < middle < 0.4  # the ramp
    assert found["n"].tolist() == [1, 1, 1]


def test_masks_are_no_scenes() -> None:
    assert scene({"mask": np.zeros((1, 64, 64), np.float32)}, 0) is None


IMAGE = "17 (float[1,3,32,32] x) => (float[1,3,32,32] y) { y = Relu (x) }"


@pytest.mark.parametrize(
    ("seconds", "names"),
    [
        (0.01, ["normal", "uniform", "small", "zeros", "wide", "smooth", SCENE]),
        (2.0, ["normal", "zeros", SCENE]),
        (9.0, ["normal", SCENE]),
    ],
)
def test_a_slow_model_runs_on_fewer_inputs(
    seconds: float, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reference, "_references", {})
    monkeypatch.setattr(reference, "seconds_of_run", lambda *_: seconds)
    original = Runnable(structure=model(IMAGE).SerializeToString())
    found = reference_of(original, original, Settings(isolated=False), 3)

    assert [feed.name for feed in found.feeds] == names


def test_the_clock_counts_only_if_the_estimate_is_far_too_low() -> None:
    proto, sizes = model(IMAGE), {"x": (1, 3, 32, 32)}
    estimated = seconds_of_run(proto, sizes, float("inf"))

    assert seconds_of_run(proto, sizes, 0.01) == estimated
    assert [seconds_of_run(proto, sizes, seconds) for seconds in (1.0, 3.9, 4.1)] == [1.0, 1.0, 4.0]
    assert [affordable(6.0, seconds, 1, 7) for seconds in (0.1, 2.0, 60.0)] == [7, 3, 1]
