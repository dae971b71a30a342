"""Texts that people pasted into issues are recognised, whole and with what stands around them, and answered."""

from __future__ import annotations

import sys

import pytest

from onnx_migrate.cli.output.explanation_view import answer_lines
from onnx_migrate.explanation.asked import Answer, explain
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
