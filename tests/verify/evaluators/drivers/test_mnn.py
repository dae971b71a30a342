"""MNN: numbers beside ONNX Runtime's, its narrower types, and what it says of models that it does not take."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from onnx_migrate.verify.evaluators import EvaluationError
from tests.verify.evaluators.drivers.runs import fixture, need, off, opened


@pytest.mark.parametrize(
    "name", ["detector_opset9", "unet_opset9", "speech_opset13", "stateful_lstm_opset13"]
)
def test_fixtures_compute_what_onnx_runtime_computes(name):
    assert off("mnn", *fixture(name)) < 1e-5


def test_integers_of_64_bits_are_handed_over_as_32():
    text = "(int64[2] k) => (int64[2] z) { z = Add(k, k) }"
    with opened("mnn", text) as evaluator:
        assert evaluator.run({"k": np.array([1, -7])})["z"].tolist() == [2, -14]
        with pytest.raises(EvaluationError, match="beyond 32 bits"):
            evaluator.run({"k": np.array([1, 2**40])})


def test_a_model_that_it_does_not_convert_is_an_error_of_loading():
    with opened("mnn", "(float[2] x) => (float[2] y) { y = Relu(x) }") as evaluator:
        evaluator._path.write_bytes(b"no model")
        with pytest.raises(EvaluationError) as caught:
            evaluator.run({"x": np.zeros(2, np.float32)})
    assert caught.value.loading


def test_nothing_is_reported_to_its_makers():
    need("mnn")
    from onnx_migrate.verify.evaluators.drivers import mnn

    assert mnn.version().startswith("MNN 3.")
    assert not [name for name in sys.modules if name.startswith(("MNN.tools", "aliyun"))]
