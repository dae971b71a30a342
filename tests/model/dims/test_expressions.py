"""Dims that are expressions of symbols."""

from __future__ import annotations

import pytest

from onnx_migrate.model.dims.expressions import is_expression, value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("H", 33),
        ("2*H", 66),
        ("H//2 + 1", 17),
        ("(H + 31)//32", 2),
        ("4*((H + 7)//8) - N", 18),
        ("N*H + 1", 67),
        ("7", 7),
        ("W", None),
        ("2*W", None),
        ("H/2", None),
        ("H//0", None),
        ("H**9", None),
        ("__import__('os')", None),
        ("2*", None),
        ("unk__0 of y", None),
        ("True + H", None),
        ("H" * 300, None),
        ("(" * 150 + "H" + ")" * 150, None),
    ],
)
def test_the_value_of_an_expression(text: str, value: int | None) -> None:
    assert value_of(text, {"H": 33, "N": 2}) == value


def test_a_name_is_no_expression() -> None:
    assert [is_expression(text) for text in ("H", "batch.size", "2*H", "a b", "")] == [
        False,
        True,
        True,
        False,
        False,
    ]
