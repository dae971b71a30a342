"""CenterCropPad downwards: longer, shorter and equal axes, known and computed at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering import check_down


def crop_pad(target: list[int], axes: str = "", *, fed: bool = False, dtype: str = "float") -> str:
    count = len(target)
    extra = f", int64[{count}] target" if fed else ""
    constant = "" if fed else f"<int64[{count}] target = {{{str(target)[1:-1]}}}>"
    return f"""<ir_version: 8, opset_import: ["": 18]>
        graph ({dtype}[2, 5, 8] x{extra}) => ({dtype}[a, b, c] y) {constant} {{ y = CenterCropPad {axes} (x, target) }}"""


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize(
    ("target", "axes"),
    [
        ([2, 5, 8], ""),
        ([4, 3, 8], ""),
        ([1, 8, 5], ""),
        ([7, 4], "<axes = [1, 2]>"),
        ([4, 8], "<axes = [-1, -2]>"),
        ([0], "<axes = [1]>"),
    ],
)
def test_targets(target: list[int], axes: str, fed: bool) -> None:
    source = crop_pad(target, axes, fed=fed)
    feeds: dict[str, Any] = {"x": np.random.default_rng(0).standard_normal((2, 5, 8)).astype(np.float32)}
    feeds["x"][0, 0, :3] = [np.nan, -0.0, np.inf]
    if fed:
        feeds["target"] = np.array(target, np.int64)
    refused = {"unranked": "needs-rank"} if axes else None
    check_down(source, 17, 13, 12, feeds=feeds, refused=refused)
    if not fed:
        check_down(source, 10, 9, 7, feeds=feeds, variants=("plain",))


@pytest.mark.parametrize(("dtype", "numpy"), [("int64", np.int64), ("uint8", np.uint8), ("bool", np.bool_)])
def test_types(dtype: str, numpy: Any) -> None:
    x = np.arange(80).reshape(2, 5, 8).astype(numpy)
    check_down(crop_pad([3, 4, 9], dtype=dtype), 17, 13, feeds={"x": x}, variants=("plain", "symbolic"))
