from __future__ import annotations

import pytest

from onnx_migrate.explanation.runtime_rows import RuntimeRelease, runtime_rows
from onnx_migrate.report.json_form import json_of
from onnx_migrate.standard.targets import known_names


@pytest.mark.parametrize("name", known_names())
def test_every_runtime_is_explained(name: str) -> None:
    rows = runtime_rows(name)
    assert rows is not None
    assert json_of(rows)["name"] == name
    assert json_of(rows)["title"]


def test_operators_that_are_listed_and_those_that_are_lacking() -> None:
    listed, others = runtime_rows("tensorrt==8.4"), runtime_rows("rknn==1.6")
    assert isinstance(listed, RuntimeRelease)
    assert isinstance(others, RuntimeRelease)
    assert "LayerNormalization" not in listed.operators
    assert "Conv" in listed.operators
    assert others.lacking
    assert not others.operators


def test_a_text_that_names_no_runtime() -> None:
    assert runtime_rows("no runtime at all") is None
