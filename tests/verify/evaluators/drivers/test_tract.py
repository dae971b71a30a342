"""tract: numbers beside ONNX Runtime's, and what it says of models that it does not take."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.verify.evaluators import EvaluationError
from tests.verify.evaluators.drivers.runs import fixture, need, off, opened


@pytest.mark.parametrize(
    "name", ["detector_opset11", "unet_opset9", "transformer_opset12", "classifier_opset11"]
)
def test_fixtures_compute_what_onnx_runtime_computes(name):
    assert off("tract", *fixture(name)) < 1e-5


def test_what_it_lacks_is_in_its_own_words():
    model, feed = fixture("conv_relu_upsample_opset9")
    with (
        opened("tract", model) as evaluator,
        pytest.raises(EvaluationError, match="Upsample") as caught,
    ):
        evaluator.run(feed)
    assert caught.value.loading
    assert "backtrace" not in str(caught.value)


def test_types_and_scalars_are_kept():
    text = "(int64[2] k, float x) => (int64[2] z, float y) { z = Add(k, k) y = Neg(x) }"
    feed = {"k": np.array([1, 2**40]), "x": np.array(1.5, np.float32)}
    with opened("tract", text) as evaluator:
        found = evaluator.run(feed)
    assert found["z"].dtype == np.int64
    assert found["z"].tolist() == [2, 2**41]
    assert found["y"].shape == ()


def test_a_type_that_it_does_not_take_is_an_error_of_loading():
    need("tract")
    from onnx_migrate.verify.evaluators.drivers import tract

    with pytest.raises(TypeError, match="input 'x' is of complex64"):
        tract.load.__globals__["_type"]("x", np.zeros(1, np.complex64))
    assert tract.version().startswith("tract 0.")
