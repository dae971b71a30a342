"""ReverseSequence below 10: both layouts, lengths of 0 and 1, every rank and kind of type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering import check_down


def text(shape: list[int], batch: int | None, dtype: str = "float") -> str:
    attributes = "" if batch is None else f"<batch_axis = {batch}, time_axis = {1 - batch}>"
    count = shape[1 if batch is None else batch]
    return f"""<ir_version: 5, opset_import: ["": 10]>
        graph ({dtype}{shape} x, int64[{count}] n) => ({dtype}{shape} y) {{ y = ReverseSequence {attributes} (x, n) }}"""


@pytest.mark.parametrize("shape", [[4, 3], [4, 3, 2], [4, 3, 2, 2]])
@pytest.mark.parametrize("batch", [None, 0, 1])
def test_layouts(shape: list[int], batch: int | None) -> None:
    values = np.arange(np.prod(shape)).astype(np.float32)
    values[:2] = np.nan, -0.0
    for shift in range(3):
        count, steps = (shape[0], shape[1]) if batch == 0 else (shape[1], shape[0])
        lengths = np.roll(np.arange(count) % steps + 1, shift)
        feeds = {"x": values.reshape(shape), "n": lengths}
        check_down(text(shape, batch), 9, 8, 7, feeds=feeds, refused={"unranked": "needs-rank"})


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float64, np.bool_, object])
def test_types(dtype: Any) -> None:
    name = {"float64": "double", "object": "string"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
    values = (
        np.array([["a", "b"], ["c", "d"], ["e", ""]], object)
        if dtype is object
        else np.arange(6).reshape(3, 2)
    )
    feeds = {"x": values.astype(dtype), "n": np.array([3, 2])}
    check_down(text([3, 2], 1, name), 9, feeds=feeds, variants=("plain", "symbolic"))
