"""ncnn by pnnx: numbers beside ONNX Runtime's, batches, and what it says of models that it does not take."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.evaluators import EvaluationError
from tests.verify.evaluators.drivers.runs import fixture, need, off, opened


@pytest.mark.parametrize("name", ["conv_relu_upsample_opset11", "speech_opset10", "unet_opset9"])
def test_fixtures_compute_what_onnx_runtime_computes(name):
    assert off("ncnn", *fixture(name)) < 1e-4


def test_a_batch_of_several():
    feed = {"x": np.linspace(-1, 1, 4 * 2 * 5 * 5, dtype=np.float32).reshape(4, 2, 5, 5)}
    text = "(float[N,2,5,5] x) => (float[N,2,5,5] y) { y = Relu(x) }"
    assert off("ncnn", text, feed) == 0


def test_what_it_lacks_is_in_its_own_words():
    model, feed = fixture("classifier_opset9")
    with opened("ncnn", model) as evaluator, pytest.raises(EvaluationError, match="TopK") as caught:
        evaluator.run(feed)
    assert caught.value.loading


def test_its_version_is_a_number():
    need("ncnn")
    from onnx_migrate.verify.evaluators.drivers import ncnn

    assert ncnn.version().startswith("ncnn 1.")
