"""onnx.reference as an evaluator."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from onnx_migrate.verify import Runnable
from onnx_migrate.verify.evaluators import EvaluationError
from onnx_migrate.verify.evaluators.reference import Reference
from tests.verify.harness import net, runnable


def test_external_data_is_loaded_and_an_error_of_loading_where_it_is_missing(tmp_path):
    model = net("(float[4] x) => (float[4] y) { y = Add(x, w) }", w=[1.0, 2, 3, 4])
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    y = Reference(Runnable(tmp_path / "m.onnx")).run({"x": np.zeros(4, np.float32)})["y"]
    assert y.tolist() == [1, 2, 3, 4]
    (tmp_path / "w.bin").unlink()
    with pytest.raises(EvaluationError) as caught:
        Reference(Runnable(tmp_path / "m.onnx"))
    assert caught.value.loading


def test_an_error_of_a_run_names_its_kind():
    model = Reference(runnable("(float[N] x) => (float[2,2] y) { y = Reshape(x, s) }", s=[2, 2]))
    with pytest.raises(EvaluationError, match=r"^\w+Error: ") as caught:
        model.run({"x": np.zeros(5, np.float32)})
    assert caught.value.node == ""


def test_a_run_that_takes_too_long_ends(monkeypatch):
    model = Reference(runnable("(float[2] x) => (float[2] y) { y = Relu(x) }"))
    monkeypatch.setattr("onnx_migrate.verify.evaluators.reference._PATIENCE", -1.0)
    with pytest.raises(EvaluationError, match="too slow for it") as caught:
        model.run({"x": np.zeros(2, np.float32)})
    assert caught.value.limit


@pytest.mark.parametrize("called", [False, True])
def test_before_opset_7_a_slope_is_of_a_channel(called):
    body = "{ y = PRelu(x, s) }"
    weights = "<float[2] s = {1.0, 2.0}>"
    function = '<domain: "d", opset_import: ["": 6]> f (x, s) => (y) ' + body if called else ""
    text = f"""<ir_version: 10, opset_import: ["": 6, "d": 1]> g (float[1,2,1,2] x) => (float[1,2,1,2] y) {weights}
        {"{ y = d.f (x, s) }" if called else body} {function}"""
    given = Runnable(structure=onnx.parser.parse_model(text).SerializeToString())
    y = Reference(given).run({"x": -np.ones((1, 2, 1, 2), np.float32)})["y"]
    assert y.reshape(-1).tolist() == [-1, -1, -2, -2]
