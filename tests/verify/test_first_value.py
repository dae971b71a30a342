"""The first value that differs, each computed from the same inputs."""

from __future__ import annotations

from onnx_migrate.verify.evaluators import Runnable
from onnx_migrate.verify.first_value import NOTHING, first_value
from tests.harness import model

TEXT = """<ir_version: 8, opset_import: ["":17]> g (float[2,8] x) => (float[2,8] y) {
  [one] a = Sin(x)  [two] b = Cos(a)  [three] d = Neg(b)  [four] y = Tanh(d)
}"""


def runnable(text: str) -> Runnable:
    return Runnable(structure=model(text).SerializeToString())


def test_the_first_of_two_faults_is_named() -> None:
    node, operator, value, problem = first_value(
        runnable(TEXT), runnable(TEXT.replace("Cos(a)", "Sin(a)").replace("Tanh", "Sigmoid")), None, 0
    )

    assert (node, operator, value) == ("two", "Sin", "b")
    assert "Sin 'two' computes another 'b'" in problem


def test_equal_models_and_models_that_do_not_run_have_none() -> None:
    assert first_value(runnable(TEXT), runnable(TEXT), None, 0) == NOTHING
    broken = TEXT.replace("Tanh", "com.nowhere.Tanh").replace('"":17', '"":17, "com.nowhere":1')
    assert first_value(runnable(broken), runnable(TEXT), None, 0) == NOTHING
