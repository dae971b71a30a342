"""OpenVINO: numbers beside ONNX Runtime's, in float32, and what it says of models that it does not take."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.evaluators import EvaluationError
from tests.verify.evaluators.drivers.runs import fixture, need, off, opened


@pytest.mark.parametrize("name", ["detector_opset11", "unet_opset9", "transformer_opset12", "crnn_opset12"])
def test_fixtures_compute_what_onnx_runtime_computes(name):
    assert off("openvino", *fixture(name)) < 1e-5


def test_it_computes_in_float32():
    rng = np.random.default_rng(0)
    w = rng.standard_normal((256, 256)).astype(np.float32)
    feed = {"x": rng.standard_normal((64, 256)).astype(np.float32)}
    assert off("openvino", "(float[64,256] x) => (float[64,256] y) { y = MatMul(x, w) }", feed, w=w) < 1e-5


def test_what_it_lacks_is_in_its_own_words():
    model = "(float[2] x) => (float[2] y) { y = Det(x) }"
    with opened("openvino", model) as evaluator, pytest.raises(EvaluationError) as caught:
        evaluator.run({"x": np.zeros(2, np.float32)})
    assert caught.value.loading
    assert "Det" in str(caught.value)


def test_its_version_is_a_number():
    need("openvino")
    from onnx_migrate.verify.evaluators.drivers import openvino

    assert openvino.version().split()[1][:2] == "20"
