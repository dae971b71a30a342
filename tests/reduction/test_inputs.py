"""The user's inputs and limits of a reduction: read, fitted and checked as those of a migration."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_migrate
from onnx_migrate import UsageError
from tests.harness import model
from tests.reduction.harness import with_weights
from tests.support.skips import Elsewhere, import_or_skip

HERE: dict[str, Any] = {"isolated": False}
TANH = "if grep -q Tanh {}; then exit 3; fi"
NET = "17 (float[2,4] x) => (float[2,4] y) { a = Relu (x) b = Tanh (a) y = Neg (b) }"

# The Add needs sizes that are multiples of 32, as the skip connections of a network do.
SKIP = """17 (float[N,3,H,W] x) => (float[N,3,H,W] y) {
  h = MaxPool <kernel_shape = [32, 32], strides = [32, 32]> (x)
  u = ConvTranspose <kernel_shape = [32, 32], strides = [32, 32], group = 3> (h, k) a = Add (x, u) y = Tanh (a)
}"""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    image = import_or_skip("PIL.Image", Elsewhere.INSTALLED)
    rng = np.random.default_rng(0)
    for place in range(10):
        image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).save(tmp_path / f"{place}.png")
    return tmp_path


def notes(**options: Any) -> list[str]:
    """Return the notes on a reduction of a model that does not run at the photographs' own sizes."""
    skip = with_weights(model(SKIP), k=np.ones((3, 1, 32, 32), np.float32))
    report = onnx_migrate.reduce(skip, check=TANH, **options, **HERE).report
    assert report.nodes == 1
    return [note for note in report.notes if "no runtime here runs the model" in note]


def test_images_are_rounded_to_sizes_at_which_the_model_runs(photos: Path) -> None:
    assert notes(input_data=photos) == []


def test_images_keep_their_sizes_without_onnxruntime(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (note,) = notes(input_data=photos)
    assert "needs onnxruntime, which is not installed" in note


@pytest.mark.parametrize("option", [{"mean": 0.5}, {"std": "0.5"}, {"layout": "nhwc"}], ids=str)
def test_options_of_images_need_input_data(option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="are for images"):
        onnx_migrate.reduce(model(NET), check=TANH, **option, **HERE)


@pytest.mark.parametrize("limit", [{"atol": "z:1e-3"}, {"rtol": {"b": 1e-3}}], ids=str)
@pytest.mark.parametrize("check", [{"check": TANH}, {"run_in": "onnxruntime"}, {"against": "other"}], ids=str)
def test_a_limit_is_for_an_output_of_the_model(check: dict[str, Any], limit: dict[str, Any]) -> None:
    if "against" in check:
        check = {"against": model(NET.replace("Tanh", "Sigmoid"))}
    with pytest.raises(UsageError, match="the model has no output") as caught:
        onnx_migrate.reduce(model(NET), **check, **limit, **HERE)
    assert caught.value.code == "no-such-input"
