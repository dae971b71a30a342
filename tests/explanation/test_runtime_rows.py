from __future__ import annotations

import pytest

from onnx_migrate.explanation.runtime_rows import runtime_rows
from onnx_migrate.spec.targets import known_names


@pytest.mark.parametrize("name", known_names())
def test_every_runtime_is_explained(name: str) -> None:
    rows = runtime_rows(name)
    assert rows is not None
    assert rows.table.name == name
    assert rows.as_dict()["title"]


def test_operators_that_are_listed_and_those_that_are_lacking() -> None:
    listed, others = runtime_rows("tensorrt==8.4"), runtime_rows("rknn==1.6")
    assert listed is not None
    assert others is not None
    assert "LayerNormalization" not in listed.operators
    assert "Conv" in listed.operators
    assert others.lacking
    assert not others.operators


def test_a_text_that_names_no_runtime() -> None:
    assert runtime_rows("no runtime at all") is None
