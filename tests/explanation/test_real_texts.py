"""Texts that people pasted into issues are recognised, whole and with what stands around them, and answered."""

from __future__ import annotations

import sys

import pytest

from onnx_migrate.cli.output.explanation_view import answer_lines
from onnx_migrate.explanation.asked import Answer, explain
from onnx_migrate.standard.error_texts import error_texts, find
from tests.support.paths import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TEXTS = tomllib.loads((ROOT / "tests" / "explanation" / "real_texts.toml").read_text(encoding="utf-8"))[
    "text"
]


@pytest.mark.parametrize("given", TEXTS, ids=lambda given: given["url"].partition("//")[2])
def test_a_pasted_text_is_recognised_and_answered(given: dict[str, str | list[str]]) -> None:
    found = explain(str(given["text"]))
    assert isinstance(found, Answer)
    assert [item.name for item in found.errors] == [given["name"], *given.get("also", [])]
    said = " ".join(" ".join(answer_lines(found)).split())
    assert str(given["answer"]) in said


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("mxnet2ncnn model-symbol.json model.params\nReshape not supported yet!", "ncnn-not-supported-yet"),
        (
            "ERROR burn_onnx::logger: Failed to parse ONNX file 'm.onnx': no more is said",
            "tensorrt-parsing-node-failed",
        ),
        (
            "cv2.error: OpenCV(4.2.0) onnx_importer.cpp:57: error: Failed to parse onnx model",
            "model-proto-does-not-have-a-graph",
        ),
    ],
)
def test_a_message_that_names_another_tool_is_not_given_to_a_third(text: str, wrong: str) -> None:
    """tracel-ai/burn-onnx#415, Tencent/ncnn#344, hpc203/yolact-opencv-dnn-cpp-python#4."""
    named = {item.entry.name for item in find(text, error_texts())}
    assert wrong not in named
    assert wrong in {item.entry.name for item in find(_unnamed(text), error_texts())}


def _unnamed(text: str) -> str:
    """Return a text without what names the tool."""
    for words in ("mxnet2ncnn", "burn_onnx::logger: ", "cv2.error: OpenCV(4.2.0) "):
        text = text.replace(words, "")
    return text
