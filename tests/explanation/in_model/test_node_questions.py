"""Questions on nodes: each holds for one model and not for another."""

from __future__ import annotations

import pytest

from onnx_migrate.explanation.in_model.node_questions import NODE_QUESTIONS
from onnx_migrate.explanation.in_model.view import ModelView
from onnx_migrate.inspection import load_structure
from tests.explanation.in_model.conftest import Make

RESIZE = 'y = Resize <mode = "nearest"> (x, r, s)'
WEIGHTS = "<float[8] r = {0,0,0,0,1,1,1,1}, float[4] s = {1,1,2,2}>"
COMPUTED = "t = Neg(k) s = Neg(t) y = Upsample(x, s)"


@pytest.mark.parametrize(
    ("question", "given", "yes", "no"),
    [
        (
            "not-in-opset",
            {"op": "Gelu"},
            {"nodes": "y = Gelu(x)", "opset": 17, "ir": 8},
            {"nodes": "y = Gelu(x)", "opset": 20, "ir": 9},
        ),
        ("not-in-opset", {"op": ""}, {"nodes": "y = Foo(x)"}, {"nodes": "y = Relu(x)"}),
        (
            "deprecated",
            {"op": "upsample"},
            {"nodes": "y = Upsample(x, k)", "inputs": "float[1,3,4,4] x, float[4] k"},
            {"nodes": "y = Upsample(x, k)", "inputs": "float[1,3,4,4] x, float[4] k", "opset": 9},
        ),
        (
            "not-registered",
            {"op": "ConstantFill"},
            {"nodes": "y = ConstantFill(x)"},
            {"nodes": "y = Relu(x)"},
        ),
        ("has-operator", {"op": "ai.onnx.Relu"}, {"nodes": "y = Relu(x)"}, {"nodes": "y = Neg(x)"}),
        (
            "has-version",
            {"op": "Relu", "version": "6"},
            {"nodes": "y = Relu(x)"},
            {"nodes": "y = Relu(x)", "opset": 13},
        ),
        (
            "attribute",
            {"op": "ReduceMean", "attribute": "axes"},
            {"nodes": "y = ReduceMean <axes = [1]> (x)", "opset": 18},
            {"nodes": "y = ReduceMean <axes = [1]> (x)", "opset": 17},
        ),
        (
            "has-attribute",
            {"op": "", "attribute": "axes"},
            {"nodes": "y = ReduceMean <axes = [1]> (x)"},
            {"nodes": "y = Relu(x)"},
        ),
        (
            "attribute-not",
            {"op": "Resize", "attribute": "coordinate_transformation_mode", "value": "asymmetric"},
            {"nodes": RESIZE, "weights": WEIGHTS},
            {
                "nodes": RESIZE.replace("mode =", 'coordinate_transformation_mode = "asymmetric", mode ='),
                "weights": WEIGHTS,
            },
        ),
        (
            "computed-input",
            {"op": "Upsample", "input": "scales"},
            {"nodes": COMPUTED, "inputs": "float[1,3,4,4] x, float[4] k", "opset": 9},
            {"nodes": RESIZE, "weights": WEIGHTS},
        ),
        (
            "has-input",
            {"op": "Resize", "input": "sizes"},
            {"nodes": "y = Resize(x, r, s, z)", "weights": WEIGHTS, "inputs": "float[1,3,4,4] x, int64[4] z"},
            {"nodes": RESIZE, "weights": WEIGHTS},
        ),
        ("empty-input", {"op": "Resize"}, {"nodes": RESIZE, "weights": WEIGHTS}, {"nodes": "y = Relu(x)"}),
        (
            "negative-axis",
            {},
            {"nodes": "y = Softmax <axis = -1> (x)"},
            {"nodes": "y = Softmax <axis = 1> (x)"},
        ),
        ("illegal", {"op": "Relu"}, {"nodes": "y = Relu <alpha = 1.0> (x)"}, {"nodes": "y = Relu(x)"}),
        ("illegal", {}, {"nodes": "y = Relu(z)"}, {"nodes": "y = Relu(x)"}),
    ],
)
def test_questions(
    make: Make, question: str, given: dict[str, str], yes: dict[str, str], no: dict[str, str]
) -> None:
    asked = {name: (value,) for name, value in given.items()}
    for model, raises in ((yes, True), (no, False)):
        view = ModelView(load_structure(make(**model))[0])
        finding = NODE_QUESTIONS[question](view, asked)
        assert finding.raises is raises, finding
        assert finding.reason
        assert bool(finding.places) or not raises or question == "illegal"


def test_every_question_is_asked_above() -> None:
    mark = next(mark for mark in test_questions.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1]} == set(NODE_QUESTIONS)
