"""TensorScatter below opset 24."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import model, random_feeds, reference
from tests.lowering import check_down


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(
    ("cache", "update", "axis"),
    [("[3,2,6,4]", "[3,2,3,4]", None), ("[3,6,4]", "[3,2,4]", 1), ("[3,5]", "[3,2]", -1)],
)
def test_modes_and_axes(mode: str, cache: str, update: str, axis: int | None) -> None:
    attributes = f'mode = "{mode}"' + ("" if axis is None else f", axis = {axis}")
    for dtype in ("float", "int64", "float16"):
        source = f"""<ir_version: 12, opset_import: ["": 24]> graph ({dtype}{cache} c, {dtype}{update} u, int64[3] w)
            => ({dtype}{cache} y) {{ y = TensorScatter<{attributes}> (c, u, w) }}"""
        feeds = random_feeds(model(source))
        feeds["w"] = np.array([0, 1, 3] if mode == "linear" else [0, 4, 7])
        expected = reference(model(source), feeds, None)
        check_down(source, 23, 13, 11, 9, feeds=feeds, expected=expected, refused={"unranked": "needs-rank"})


def test_no_indices() -> None:
    source = """<ir_version: 12, opset_import: ["": 24]> graph (float[2,5,3] c, float[2,2,3] u) => (float[2,5,3] y)
        { y = TensorScatter(c, u) }"""
    feeds = random_feeds(model(source))
    expected = reference(model(source), feeds, None)
    check_down(source, 23, 15, feeds=feeds, expected=expected, refused={"unranked": "needs-rank"})
