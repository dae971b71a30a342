"""A release of ONNX Runtime in a process of its own: the installed one, and old ones in other Pythons."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.process import Limits
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.evaluators.drivers import onnxruntime
from onnx_migrate.verify.evaluators.foreign import Foreign, Place
from tests.support.skips import Elsewhere, skip
from tests.verify.evaluators.drivers.runs import fixture, off, opened
from tests.verify.harness import RELU, runnable


def test_it_computes_what_onnx_runtime_computes_here():
    assert onnxruntime.version().startswith("ONNX Runtime 1.")
    assert off("onnxruntime", *fixture("speech_opset13")) < 1e-6


def test_an_error_reads_without_source_locations():
    model = "(float[N,4] x) => (float[N,4] y) { [bad] y = Reshape(x, s) }"
    with opened("onnxruntime", model, s=[3, 3]) as evaluator, pytest.raises(EvaluationError) as caught:
        evaluator.run({"x": np.ones((2, 4), np.float32)})
    assert str(caught.value).startswith("Reshape 'bad': ")
    assert not caught.value.loading


@pytest.mark.campaign
@pytest.mark.parametrize("version", ["1.6.0", "1.9.0", "1.17.3"])
def test_an_old_release_runs_in_a_python_of_its_own(version):
    from tests.campaigns.runtimes import releases

    try:
        python, folders = releases._installed("onnxruntime", version)
    except releases.Unavailable as reason:
        skip(str(reason), Elsewhere.ONLINE)
    place = Place("onnxruntime", python, tuple(map(str, folders)))
    model, feed = fixture("unet_opset9")
    with Foreign(model, place, Limits(120.0)) as evaluator:
        assert evaluator.name == f"ONNX Runtime {version}"
        assert evaluator.run(feed)["mask"].shape == (1, 3, 30, 32)
    newest = runnable(RELU, opset=25, ir=11)
    with Foreign(newest, place, Limits(120.0)) as evaluator, pytest.raises(EvaluationError) as caught:
        evaluator.run({"x": feed["image"][0, 0, :, :4]})
    assert caught.value.loading
