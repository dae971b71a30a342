"""Explanations say the values of the text, and give the commands that mend what it complains of."""

from __future__ import annotations

import re

import pytest

from onnx_migrate.explanation.error_text import Explanation, explanation_of
from onnx_migrate.standard.error_texts import ErrorText, error_texts, find

ENTRIES = pytest.mark.parametrize("entry", error_texts(), ids=lambda entry: entry.name)


LIMITED = "is under development and support for this is limited. x Current official support for domain"


def explained(text: str) -> Explanation:
    (found,) = find(text, error_texts())
    return explanation_of(found, text)


def commands(text: str) -> list[str]:
    return [remedy.command for remedy in explained(text).remedies if remedy.command]


def test_an_operator_that_is_newer_than_the_opset() -> None:
    item = explained("No Op registered for Range with domain_version of 10")
    assert "Range exists since opset 11" in item.meaning[0]
    assert "opset 10" in item.meaning[0]
    assert commands("No Op registered for Range with domain_version of 10") == [
        "onnx-migrate model.onnx out.onnx --opset 11"
    ]


def test_an_operator_of_another_domain_is_no_matter_of_the_opset() -> None:
    text = "No Op registered for ArrayFeatureExtractor with domain_version of 11"
    assert "domain ai.onnx.ml" in " ".join(explained(text).meaning)
    assert commands(text) == []


def test_an_operator_that_nobody_knows_cannot_be_mended() -> None:
    item = explained("Fatal error: my.domain:FooBar(1) is not a registered function/op")
    assert [remedy.command for remedy in item.remedies] == [""]
    assert "cannot fix" in item.remedies[0].text


def test_a_removed_operator_is_written_out() -> None:
    assert commands("Fatal error: ConstantFill is not a registered function/op") == [
        "onnx-migrate model.onnx out.onnx --opset 17"
    ]


def test_the_model_of_the_text_stands_in_the_command() -> None:
    text = "Load model from /data/my models/a.onnx failed: Unsupported model IR version: 13, max supported IR version: 8"
    assert commands(text)[0] == "onnx-migrate '/data/my models/a.onnx' out.onnx --ir-version 8"


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("Unrecognized attribute: axes for operator ReduceMean", "--opset 18+"),
        ("Unrecognized attribute: block_size for operator DequantizeLinear", "--opset 21+"),
        ("Op registered for Upsample is deprecated in domain_version of 11", "--opset 11"),
        ("Could not find an implementation for Relu(1) node with name ''", "--opset 17"),
        (f"Opset 22 {LIMITED} ai.onnx is till opset 21.", "--opset 21"),
        (f"Opset 5 {LIMITED} ai.onnx.ml is till opset 3.", "--opset ai.onnx.ml=3"),
    ],
)  # fmt: skip
def test_commands(text: str, command: str) -> None:
    assert commands(text)[0] == f"onnx-migrate model.onnx out.onnx {command}"


def test_others_of_the_same_error_are_named() -> None:
    log = "\n".join(
        f"No Op registered for {op} with domain_version of 10" for op in ("Range", "Round", "GatherND")
    )
    assert explained(log).alike == ("Round", "GatherND")


@ENTRIES
def test_every_example_is_explained_and_mended_or_not(entry: ErrorText) -> None:
    (found,) = find(entry.example, [entry])
    item = explanation_of(found, entry.example)
    assert item.meaning
    assert item.remedies
    for text in (*item.meaning, *item.causes, *(remedy.text + remedy.command for remedy in item.remedies)):
        assert not re.search(r"\{[a-z_]+[|}]", text)


@ENTRIES
def test_every_text_is_explained_also_where_its_values_are_missing(entry: ErrorText) -> None:
    for pattern in entry.patterns:
        text = " ".join(pattern.words.split())
        for found in find(text, [entry]):
            item = explanation_of(found, text)
            assert item.meaning, pattern
            assert item.remedies, pattern
