"""What people paste is recognised for what it is; else what is nearest is named, and all that is known can be listed."""

from __future__ import annotations

import pytest

from onnx_migrate.errors import UsageError
from onnx_migrate.explanation.asked import Answer, Unknown, explain
from onnx_migrate.explanation.near import names, near_error_texts, near_names, operators_in
from onnx_migrate.explanation.overview import first_sentence, groups_of_codes, overview
from onnx_migrate.explanation.runtime_rows import RuntimeRelease
from onnx_migrate.json_form import json_of
from onnx_migrate.report.codes import CODES
from onnx_migrate.standard.error_texts import error_texts
from onnx_migrate.standard.targets import known_names


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


def test_the_nearest_error_texts_are_of_the_tool_that_the_text_names() -> None:
    found = explain("E RKNN: this op is not supported: Foo, need <= 12 in the onnx opset")
    assert isinstance(found, Unknown)
    assert found.errors
    assert all("rknn" in name or "load_onnx" in title for name, title in found.errors)


@pytest.mark.parametrize(
    "text",
    ["RuntimeError: TensorRT currently supports only WeightsNChw", "something of QNN went wrong at last"],
)
def test_a_sentence_that_names_a_runtime_is_no_question_about_it(text: str) -> None:
    assert isinstance(explain(text), Unknown)


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


def test_names() -> None:
    assert near_names("reszie") == ("Resize",)
    assert near_names("") == ()
    assert near_names("far too many words for any name") == ()


def test_error_texts_by_the_words_they_share() -> None:
    near = near_error_texts("some adapter lookup failed: no adapter found from this version for that")
    assert near[0].name.startswith("no-adapter")
    assert near_error_texts("1 2 3") == ()


def test_an_error_text_by_a_part_that_was_cut_within_a_word() -> None:
    assert near_error_texts("ould not find an implementa")[0].name == "could-not-find-an-implementation-for"
    assert near_error_texts("implement") == ()


def test_operators_by_their_spelling() -> None:
    assert operators_in(
        "failed at /model/GridSample_3 (GridSample) and Gelu; where it is, Shape not known"
    ) == ("GridSample", "Gelu")


def test_every_kind_of_name() -> None:
    known = names()
    assert {
        "needs-rank",
        "softmax-13",
        "softmax-13-down",
        "Resize",
        "tensorrt",
        "unsupported-model-ir-version",
    } <= set(known)
    assert list(known) == sorted(set(known))


def test_every_code_is_in_one_group() -> None:
    assert [code for group in groups_of_codes() for code, _ in group.lines] == list(CODES)
    assert all(group.lines for group in groups_of_codes())


def test_every_error_text_is_listed_under_its_tool() -> None:
    listed = [name for group in overview()[len(groups_of_codes()) :] for name, _ in group.lines]
    assert sorted(listed) == sorted([*(entry.name for entry in error_texts()), *known_names()])
    assert overview()[-1].title == "Runtimes"


def test_the_first_sentence() -> None:
    assert first_sentence("Opset 1.2 is old. Next.") == "Opset 1.2 is old."
    assert first_sentence("no end") == "no end"


def test_the_way_out_of_a_refused_step_is_one_text() -> None:
    answer = explain("roialign-10-down")

    assert isinstance(answer, Answer)
    assert [step.hint for step in answer.steps] == ["bring the model to opset 10"]
