"""Operators that end: refusals by name, and constant inputs of NonZero and Compress below 9."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower

X = np.array([[1, -0.0, np.nan], [np.inf, 5, 6]], np.float32)
EVERYWHERE = ("plain", "symbolic", "unranked", "if", "function")


@pytest.mark.parametrize(
    ("opset", "text"),
    [
        (20, "graph (string[2] x) => (bool[2] y) { y = RegexFullMatch <pattern = \"a\"> (x) }"),
        (20, "graph (string[2] x) => (string[2] y) { y = StringConcat (x, x) }"),
        (20, "graph (string[2] x) => (string y, int64 n) { y, n = StringSplit (x) }"),
        (10, "graph (string[2] x) => (string[2] y) { y = StringNormalizer (x) }"),
        (11, "graph (float[2] x) => (float[n] y) { y = Unique (x) }"),
        (9, """graph (int64[4] x) => (float[2] y) { y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0,
            min_gram_length = 1, mode = "TF", ngram_counts = [0], ngram_indexes = [0, 1], pool_int64s = [2, 3]> (x) }"""),
    ],
)  # fmt: skip
def test_refusals(opset: int, text: str) -> None:
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}]> {text}')
    with pytest.raises(CannotMigrate) as caught:
        lower(model, opset - 1)
    assert caught.value.code == "no-equal"
    assert f"below opset {opset}" in caught.value.reason
    assert f"opset {opset} can be reached" in str(caught.value)


@pytest.mark.parametrize(
    "values", ["float[2, 3] c = {0, 1, 2, 0, 0, 3}", "bool[4] c = {0, 1, 1, 0}", "int64[3] c = {0, 0, 0}"]
)
def test_non_zero(values: str) -> None:
    text = f"""<ir_version: 4, opset_import: ["": 9]> graph (float x) => (int64[r, n] y) <{values}> {{ y = NonZero (c) }}"""
    check_down(text, 8, 7, feeds={"x": np.zeros((), np.float32)})


def test_computed_non_zero_is_refused() -> None:
    text = (
        """<ir_version: 4, opset_import: ["": 9]> graph (float[3] x) => (int64[1, n] y) { y = NonZero (x) }"""
    )
    check_down(text, 8, refused=dict.fromkeys(EVERYWHERE, "needs-constant"))


@pytest.mark.parametrize(
    ("axis", "condition"),
    [(None, "bool[6] c = {0, 1, 1, 0, 0, 1}"), (None, "bool[2] c = {1, 1}"), (0, "bool[2] c = {0, 1}"),
     (1, "bool[3] c = {1, 0, 1}"), (1, "bool[2] c = {0, 1}"), (1, "bool[2] c = {0, 0}")],
)  # fmt: skip
def test_compress(axis: int | None, condition: str) -> None:
    attribute = "" if axis is None else f"<axis = {axis}>"
    for dtype, x in (("float", X), ("int64", np.arange(6).reshape(2, 3)), ("bool", X > 1)):
        text = f"""<ir_version: 4, opset_import: ["": 9]> graph ({dtype}[2, 3] x) => ({dtype} y)
            <{condition}> {{ y = Compress {attribute} (x, c) }}"""
        check_down(text, 8, 7, feeds={"x": x})


def test_a_computed_condition_is_refused() -> None:
    text = """<ir_version: 4, opset_import: ["": 9]> graph (float[3] x, bool[3] c) => (float[n] y)
        { y = Compress (x, c) }"""
    check_down(text, 8, refused=dict.fromkeys(EVERYWHERE, "needs-constant"))
