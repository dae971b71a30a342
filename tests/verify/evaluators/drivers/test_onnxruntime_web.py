"""onnxruntime-web under node: numbers beside ONNX Runtime's, types, and its errors.

Needs node, and `npm install --prefix FOLDER onnxruntime-web` with FOLDER in ONNX_MIGRATE_TEST_NODE.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from onnx_migrate.process import Limits
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.evaluators.drivers import onnxruntime_web
from onnx_migrate.verify.evaluators.foreign import Foreign, Place
from tests.support.skips import Elsewhere, skip
from tests.verify.evaluators.drivers.runs import fixture
from tests.verify.harness import runnable


@pytest.fixture
def place():
    here = Place.here("onnxruntime-web")
    folder = os.environ.get("ONNX_MIGRATE_TEST_NODE", "")
    if not folder or not Path(folder, "node_modules", "onnxruntime-web").is_dir():
        skip("ONNX_MIGRATE_TEST_NODE names no folder with node_modules/onnxruntime-web", Elsewhere.INSTALLED)
    return Place(here.name, here.python, (folder, *here.folders))


def test_fixtures_compute_what_onnx_runtime_computes(place):
    model, feed = fixture("detector_opset11")
    with np.load(str(model.path).replace(".onnx", ".io.npz")) as recorded, Foreign(model, place) as evaluator:
        assert evaluator.name.startswith("onnxruntime-web 1.")
        for name, value in evaluator.run(feed).items():
            assert np.allclose(value, recorded[name], rtol=1e-5, atol=1e-5)


def test_types_and_scalars_are_kept(place):
    text = "(int64[2] k, bool b, double x) => (int64[2] z, bool c, double y) { z = Add(k, k) c = Not(b) y = Neg(x) }"
    feed = {"k": np.array([1, 2**40]), "b": np.array(True), "x": np.array(0.1)}
    with Foreign(runnable(text), place) as evaluator:
        found = evaluator.run(feed)
    assert found["z"].tolist() == [2, 2**41]
    assert (found["c"].dtype, found["c"].shape, bool(found["c"])) == (np.bool_, (), False)
    assert (found["y"].dtype, float(found["y"])) == (np.float64, -0.1)


def test_what_it_does_not_load_is_an_error_of_loading(place):
    model = runnable("(float x) => (float y) { y = Rela(x) }")
    with (
        Foreign(model, place, Limits(60.0)) as evaluator,
        pytest.raises(EvaluationError, match="Rela") as caught,
    ):
        evaluator.run({"x": np.array(1, np.float32)})
    assert caught.value.loading


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ImportError, match="no program node"):
        onnxruntime_web.version()
