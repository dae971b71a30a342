"""Softmax, LogSoftmax and Hardmax below 13: every axis of every rank."""

from __future__ import annotations

import pytest

from tests.lowering import check_down

OPERATORS = ("Softmax", "LogSoftmax", "Hardmax")


def text(operator: str, shape: list[int], axis: int | None, dtype: str = "float") -> str:
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"""<ir_version: 7, opset_import: ["": 13]>
        graph ({dtype}{shape} x) => ({dtype}{shape} y) {{ y = {operator} {attribute} (x) }}"""


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("shape", [[4], [3, 4], [2, 3, 4], [2, 3, 4, 2]], ids=str)
def test_every_axis(operator: str, shape: list[int]) -> None:
    last = len(shape) - 1
    for axis in (*range(-len(shape), len(shape)), None):
        needs_rank = axis not in (-1, None) and len(shape) > 0
        check_down(
            text(operator, shape, axis), 12, 11, refused={"unranked": "needs-rank"} if needs_rank else None
        )
    check_down(text(operator, shape, last), 10, 7, variants=("plain", "symbolic"))


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
def test_double(operator: str) -> None:
    check_down(text(operator, [2, 3, 4], 1, "double"), 12, variants=("plain",))
