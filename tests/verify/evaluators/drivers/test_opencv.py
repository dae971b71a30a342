"""OpenCV: numbers beside ONNX Runtime's, and what it says of models that it does not take."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.evaluators import EvaluationError
from tests.verify.evaluators.drivers.runs import fixture, need, off, opened


@pytest.mark.parametrize("name", ["unet_opset9", "conv_relu_upsample_opset11", "espcn_opset11"])
def test_fixtures_compute_what_onnx_runtime_computes(name):
    assert off("opencv", *fixture(name)) < 1e-5


def test_outputs_come_in_the_order_of_the_model():
    text = "(float[1,2] x) => (float[1,2] z, float[1,2] a) { a = Relu(x) z = Neg(x) }"
    with opened("opencv", text) as evaluator:
        found = evaluator.run({"x": np.array([[1, -2]], np.float32)})
    assert {name: value.tolist() for name, value in found.items()} == {"z": [[-1, 2]], "a": [[1, 0]]}


def test_a_model_that_it_does_not_take_is_an_error_of_loading():
    with opened("opencv", "(float[1,2] x) => (float[1,2] y) { y = Relu(x) }") as evaluator:
        evaluator._path.write_bytes(b"no model")
        with pytest.raises(EvaluationError) as caught:
            evaluator.run({"x": np.zeros((1, 2), np.float32)})
    assert caught.value.loading


def test_its_version_is_a_number():
    need("opencv")
    from onnx_migrate.verify.evaluators.drivers import opencv

    assert opencv.version().split()[1][0] in "45"
