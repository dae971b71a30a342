"""What people paste is recognised for what it is."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.explanation.asked import Answer, Unknown, explain
from onnx_migrate.explanation.runtime_rows import RuntimeRelease
from onnx_migrate.report.json_form import json_of


def answer(text: str) -> Answer:
    found = explain(text)
    assert isinstance(found, Answer), found
    return found


def test_a_code() -> None:
    assert answer("needs-rank").codes == ("needs-rank",)
    assert answer("'Needs-Rank:' ").codes == ("needs-rank",)


def test_an_error_of_this_tool_as_it_was_printed() -> None:
    assert answer(
        "onnx-migrate: needs-rank: model.onnx: 'x' (Softmax-11 → 13): its rank is not known"
    ).codes == ("needs-rank",)


@pytest.mark.parametrize("text", ["softmax-13", "Softmax-13", "SOFTMAX-13-DOWN", "softplus-written-out"])
def test_a_step(text: str) -> None:
    assert [step.code for step in answer(text).steps] == [text.lower()]


@pytest.mark.parametrize(
    "text", ["Resize", "resize", '"RESIZE"', "ai.onnx:Resize", "ai.onnx.Resize", "ONNX::Resize"]
)
def test_an_operator(text: str) -> None:
    operator = answer(text).operator
    assert operator is not None
    assert operator.operator == "Resize"


@pytest.mark.parametrize("text", ["tensorrt==8.6", "TensorRT 8.6", "trt8.6", "jetson with TensorRT 8.6"])
def test_a_release_of_a_runtime(text: str) -> None:
    found = answer(text).runtime
    assert isinstance(found, RuntimeRelease)
    assert (found.target.name, found.target.number) == ("tensorrt", "8.6")


def test_a_release_that_is_not_known_is_an_error_of_usage() -> None:
    with pytest.raises(UsageError):
        explain("tensorrt==0.1")


def test_an_error_text_by_the_name_of_its_page() -> None:
    (item,) = answer("unsupported-model-ir-version").errors
    assert item.facts["max_ir"] == "9"


def test_what_is_not_known_has_the_nearest_names() -> None:
    for text, near in (
        ("needs-rnk", "needs-rank"),
        ("Reszie", "Resize"),
        ("tensorr", "tensorrt"),
        ("resize-12", "resize-13"),
    ):
        found = explain(text)
        assert isinstance(found, Unknown)
        assert near in found.names, text


def test_what_is_not_known_has_the_nearest_error_texts_and_its_operators() -> None:
    found = explain("Model has IR version thirteen, the max supported IR version is nine, at GridSample")
    assert isinstance(found, Unknown)
    assert found.errors[0][0] == "unsupported-model-ir-version"
    assert found.operators == ("GridSample",)


def test_words_of_nothing_have_nothing_near() -> None:
    found = explain("The quick brown fox jumps over the lazy dog")
    assert isinstance(found, Unknown)
    assert (found.names, found.errors, found.operators) == ((), (), ())


def test_json() -> None:
    given = json_of(answer("Unsupported model IR version: 10, max supported IR version: 9"))
    (error,) = given["errors"]
    assert error["remedies"][0]["command"] == "onnx-migrate model.onnx out.onnx --ir-version 9"
    assert error["values"]["ir"] == "10"
    assert error["page"] == "docs/errors/unsupported-model-ir-version.md"
