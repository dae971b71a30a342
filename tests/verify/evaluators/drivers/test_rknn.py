"""RKNN's simulator: numbers beside ONNX Runtime's within float16, and what it says of models that it does not take.

Needs a virtual environment with rknn-toolkit2, whose Python is in ONNX_MIGRATE_TEST_RKNN.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from onnx_migrate.process import Limits
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.evaluators.foreign import Foreign, Place
from tests.support.skips import Elsewhere, import_or_skip
from tests.verify.evaluators.drivers.runs import fixture
from tests.verify.harness import runnable


@pytest.fixture
def place():
    python = os.environ.get("ONNX_MIGRATE_TEST_RKNN", "")
    if not python:
        import_or_skip("rknn", Elsewhere.BY_HAND)
        from onnx_migrate.verify.evaluators.drivers import rknn

        assert rknn.version().startswith("RKNN simulator 2")
        return Place.here("rknn")
    return Place("rknn", python)


def test_fixtures_compute_what_onnx_runtime_computes(place):
    model, feed = fixture("unet_opset11")
    with np.load(str(model.path).replace(".onnx", ".io.npz")) as recorded, Foreign(model, place) as evaluator:
        assert evaluator.name.startswith("RKNN simulator 2.")
        assert np.allclose(evaluator.run(feed)["mask"], recorded["mask"], atol=2e-3)


def test_a_model_that_it_does_not_load_is_an_error_of_loading(place):
    model = runnable("(float[1,3] x) => (float[1,3] y) { y = Relu(x) }")
    with Foreign(model, place, Limits(120.0)) as evaluator:
        evaluator._path.write_bytes(b"no model")
        with pytest.raises(EvaluationError, match="Error") as caught:
            evaluator.run({"x": np.ones((1, 3), np.float32)})
    assert "Traceback" not in str(caught.value)[:20]
    assert caught.value.loading
