"""A model is asked whether it would raise an error; ONNX Runtime and onnx.checker say the same of it."""

from __future__ import annotations

import pytest

from onnx_migrate.explanation.error_text import explanation_of
from onnx_migrate.explanation.in_model.questions import QUESTIONS
from onnx_migrate.explanation.in_model.verdict import ModelVerdict, ask_model
from onnx_migrate.spec.error_texts import error_texts, find
from tests.explanation.in_model.conftest import Make


def verdict(path: str, text: str) -> ModelVerdict:
    (found,) = find(text, error_texts())
    return ask_model(explanation_of(found, text, path), path)


RANGE = "No Op registered for Range with domain_version of 10"
FED = "float a, float b, float c"


def test_a_model_that_raises_it_and_what_the_remedy_does(make: Make) -> None:
    found = verdict(make("y = Range(a, b, c)", 10, inputs=FED), RANGE)
    assert found.raises is True
    assert [(where.operator, where.node) for where in found.places] == [("Range", "y")]
    assert found.mends is True
    assert "reaches opset 11" in found.outlook


@pytest.mark.parametrize(
    ("nodes", "inputs", "opset"), [("y = Range(a, b, c)", FED, 11), ("y = Relu(x)", "float[2] x", 10)]
)
def test_a_model_that_does_not(make: Make, nodes: str, inputs: str, opset: int) -> None:
    found = verdict(make(nodes, opset, inputs=inputs), RANGE)
    assert (found.raises, found.places, found.outlook) == (False, (), "")


def test_a_remedy_that_is_refused_says_so(make: Make) -> None:
    limited = "Opset 17 is under development and support for this is limited."
    text = f"{limited} Current official support for domain ai.onnx is till opset 7"
    found = verdict(make("y = STFT(x, s)", 17, 8, inputs="float[1,16,1] x, int64 s"), text)
    assert found.raises is True
    assert found.mends is False
    assert "is refused" in found.outlook


def test_inside_sub_graphs(make: Make) -> None:
    nodes = """y = If (k) <then_branch = t () => (u) { u = Range(a, b, c) }, else_branch = e () => (v) { v = Identity(d) }>"""
    found = verdict(make(nodes, 10, inputs=f"bool k, {FED}, float[3] d"), RANGE)
    assert [where.scope for where in found.places] == ["graph/y:then_branch"]


def test_a_target_that_the_text_names(make: Make) -> None:
    text = (
        "[TensorRT v8502] No importer registered for op: LayerNormalization. Attempting to import as plugin."
    )
    found = verdict(make("y = LayerNormalization(x, w)", 17, 8, inputs="float[1,4] x, float[4] w"), text)
    assert found.raises is True
    assert any("TensorRT 8.5" in reason for reason in found.reasons)
    assert found.mends is True


def test_every_question_of_the_tables_is_known() -> None:
    asked = {check.question for entry in error_texts() for check in entry.checks}
    assert asked <= {*QUESTIONS, "target"}
    assert set(QUESTIONS) <= asked


@pytest.mark.parametrize(
    "entry", [entry for entry in error_texts() if entry.checks], ids=lambda entry: entry.name
)
def test_every_question_has_what_it_is_asked_with(make: Make, entry) -> None:  # type: ignore[no-untyped-def]
    path = make("y = Relu(x)", 13, 7)
    (found,) = find(entry.example, [entry])
    verdict = ask_model(explanation_of(found, entry.example), path)
    assert verdict.reasons or verdict.raises is None
    bare = " ".join(entry.patterns[-1].words.split())
    for item in find(bare, [entry]):
        ask_model(explanation_of(item, bare), path)
