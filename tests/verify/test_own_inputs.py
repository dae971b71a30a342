"""Runs on inputs of the user's: sizes of images, notes and metrics in the verdict, and how many inputs are run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_migrate
from onnx_migrate import compare, migrate
from onnx_migrate.errors import UsageError
from onnx_migrate.verdicts import Kind
from onnx_migrate.verify.equivalence import feed_search
from tests.support.skips import Elsewhere, import_or_skip
from tests.verify.harness import net

HERE = {"isolated": False}
LINEAR = "(float[N,3,4,4] x) => (float[N,5] y) { f = Flatten(x) y = MatMul(f, w) }"
WEIGHTS = np.random.default_rng(0).standard_normal((48, 5))
# Each axis is halved and doubled again, so the Add needs even sizes, as the skip connections of a network do.
SKIP = """(float[N,3,H,W] x) => (float[N,3,H,W] y) {
    h = MaxPool<kernel_shape = [32, 32], strides = [32, 32]>(x)
    u = ConvTranspose<kernel_shape = [32, 32], strides = [32, 32], group = 3>(h, k) y = Add(x, u) }"""


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    image = import_or_skip("PIL.Image", Elsewhere.INSTALLED)
    rng = np.random.default_rng(0)
    for at in range(10):
        image.fromarray(rng.integers(0, 256, (40, 50, 3), np.uint8)).save(tmp_path / f"{at}.png")
    return tmp_path


def test_ten_photographs_are_the_input_of_a_classifier(photos: Path) -> None:
    original, other = net(LINEAR, w=WEIGHTS), net(LINEAR, w=WEIGHTS * 1.001)
    verdict = compare(original, other, input_data=photos, mean=0.5, std=0.5, atol="y:0.1", **HERE)
    assert verdict.kind is Kind.VERIFIED
    assert len(verdict.feeds) == 10
    (metrics,) = verdict.metrics
    assert (metrics.output, metrics.inputs, metrics.rows, metrics.top1) == ("y", 10, 10, 1)
    assert metrics.snr == pytest.approx(60, abs=0.01)
    assert verdict.notes[:2] == (
        "10 images are input 'x': RGB, layout nchw, resized to height 4 and width 4 (bilinear)",
        "each number of input 'x' is (pixel / 255 - 0.5) / 0.5",
    )


def test_images_keep_sizes_at_which_the_model_runs_and_are_rounded_otherwise(photos: Path) -> None:
    relu = net("(float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Relu(x) }")
    assert compare(relu, relu, input_data=photos, **HERE).feeds[0].shapes == (("x", (1, 3, 40, 50)),)
    skip = net(SKIP, k=np.ones((3, 1, 32, 32)))
    verdict = compare(skip, skip, input_data=photos, **HERE)
    assert verdict.verified
    assert verdict.feeds[0].shapes == (("x", (1, 3, 32, 64)),)
    assert "each in its own size, rounded to multiples of 32" in verdict.notes[0]


def test_a_model_that_runs_at_no_size_is_reported_at_the_images_own(photos: Path) -> None:
    never = net("(float[N,3,H,W] x) => (float[A] y) { y = Reshape(x, s) }", s=np.array([7]))
    verdict = compare(never, never, input_data=photos, **HERE)
    assert verdict.kind is Kind.UNVERIFIED
    assert "the original does not run" in verdict.reason


def test_a_migration_reports_metrics_of_the_original_and_the_result(photos: Path) -> None:
    source = net(LINEAR.replace("[N,", "[1,"), w=WEIGHTS)
    report = migrate(source, input_data=str(photos), **HERE).report
    assert report.verification is not None
    assert [item.inputs for item in report.verification.metrics] == [10]
    assert report.request is not None
    assert report.command is not None
    assert f"--input-data {photos}" in report.command
    narrow = migrate(source, precision="fp16", input_data=str(photos), mean=0.5, std=(0.5,), **HERE).report
    assert narrow.verification is not None
    (metrics,) = narrow.verification.metrics
    assert 40 < (metrics.snr or 0) < 90  # against the float32 original, not against the model in float16
    assert "--mean 0.5 --std 0.5" in str(narrow.command)
    assert migrate(source, **HERE).report.verification.metrics == ()  # type: ignore[union-attr]


def test_a_static_model_has_the_size_of_the_first_image(photos: Path) -> None:
    source = net("(float[N,3,H,W] x) => (float[N,3,H,W] y) { y = Relu(x) }")
    result = migrate(source, static=True, input_data=photos, **HERE).model
    assert [dim.dim_value for dim in result.graph.input[0].type.tensor_type.shape.dim] == [1, 3, 40, 50]


def test_models_of_different_precision_have_metrics_and_limits_by_output(tmp_path: Path) -> None:
    graph = "(float[N,48] x) => (float[N,5] y) { y = MatMul(x, w) }"
    original = net(graph, w=WEIGHTS)
    narrow = migrate(original, precision="fp16", simplify=False, **HERE).model
    data = [{"x": np.random.default_rng(at).random((2, 48), np.float32)} for at in range(3)]
    verdict = compare(original, narrow, cast=True, input_data=data, **HERE)
    assert verdict.verified
    assert (verdict.metrics[0].rows, len(verdict.feeds)) == (6, 3)
    strict = compare(original, narrow, cast=True, input_data=data, atol="y:1e-9", **HERE)
    assert strict.kind is Kind.DIFFERS
    wrong = net(graph, w=WEIGHTS * 1.1)
    half = migrate(wrong, precision="fp16", simplify=False, **HERE).model
    assert compare(original, half, cast=True, input_data=data, **HERE).kind is Kind.DIFFERS
    assert compare(original, half, cast=True, input_data=data, rtol=0.2, **HERE).verified


def test_a_kept_process_compares_each_call_on_its_own_inputs() -> None:
    graph = "(float[N,48] x) => (float[N,5] y) { y = MatMul(x, w) }"
    original = net(graph, w=WEIGHTS)
    narrow = migrate(original, precision="fp16", simplify=False, **HERE).model
    zeros, ones = np.zeros((2, 48), np.float32), np.random.default_rng(0).random((2, 48), np.float32)
    errors = [
        compare(original, narrow, cast=True, input_data={"x": x}, **HERE).rounded[0].error
        for x in (zeros, ones, zeros)
    ]
    assert errors[0] == errors[2] == 0 < errors[1]


def test_fewer_inputs_are_run_if_all_would_take_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    model = net("(float[2] x) => (float[2] y) { y = Relu(x) }")
    data = [{"x": np.float32([at, 1])} for at in range(40)]
    assert len(compare(model, model, input_data=data, **HERE).feeds) == 40
    monkeypatch.setattr(feed_search, "_RUNS", 1e9)
    verdict = compare(model, model, input_data=data, **HERE)
    assert len(verdict.feeds) < 40
    assert any(
        note.startswith("the models were run on 1 of 40 sets of inputs, because one run")
        for note in verdict.notes
    )
    monkeypatch.setattr(feed_search, "_RUNS", 12)
    monkeypatch.setattr(feed_search, "memory_limit", lambda: 1 << 10)
    verdict = compare(model, model, input_data=data, **HERE)
    assert any("the outputs of one take 8 B; --memory-limit allows more" in note for note in verdict.notes)


def test_a_file_that_vanishes_is_an_error_of_the_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = net("(float[2] x) => (float[2] y) { y = Relu(x) }")
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    read = feed_search.check_feed

    def vanish(*args: Any) -> Any:
        (tmp_path / "x.npy").unlink(missing_ok=True)
        return read(*args)

    monkeypatch.setattr(feed_search, "check_feed", vanish)
    with pytest.raises(UsageError, match=r"x\.npy: cannot be read as input data"):
        compare(model, model, input_data=tmp_path / "x.npy", **HERE)


def test_options_for_images_need_input_data() -> None:
    model = net("(float[2] x) => (float[2] y) { y = Relu(x) }")
    for call in (
        lambda: migrate(model, mean=0.5, **HERE),
        lambda: compare(model, model, layout="nchw", **HERE),
    ):
        with pytest.raises(UsageError, match="--mean, --std and --layout are for images"):
            call()


def test_a_batch_takes_a_function(tmp_path: Path) -> None:
    model = net("(float[2] x) => (float[2] y) { y = Relu(x) }")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    text = "import numpy as np\ndef load_data():\n    yield {'x': np.zeros(LENGTH, np.float32)}\n"
    for length, migrated in ((2, 1), (3, 0)):
        (tmp_path / f"load{length}.py").write_text(text.replace("LENGTH", str(length)))
        given = f"{tmp_path / f'load{length}.py'}:load_data"
        done = onnx_migrate.batch([tmp_path / "m.onnx"], tmp_path / str(length), jobs=1, input_data=given)
        assert done.verification["verified"] == migrated
