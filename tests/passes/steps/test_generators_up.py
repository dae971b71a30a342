"""OneHot and Range compute the same at every version."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import check


@pytest.mark.parametrize("axis", ["", "<axis = 0>", "<axis = 1>"])
def test_one_hot(axis: str) -> None:
    """The indices include negative ones and ones that are out of range."""
    source = f"""<ir_version: 4, opset_import: ["": 9]>
        graph (int64[2, 3] i, int64 depth, float[2] values) => (float[a, b, c] y)
        {{ y = OneHot {axis} (i, depth, values) }}"""
    feeds = {
        "i": np.array([[0, 3, 4], [-1, -4, 2]]),
        "depth": np.array(4, np.int64),
        "values": np.array([-1, 5], np.float32),
    }
    check(source, to=11, feeds=feeds)


def test_one_hot_up_to_28() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]>
        graph (int64[2] i, int64 depth, float[2] values)
            => (float[a, b] y) { y = OneHot (i, depth, values) }"""
    feeds = {"i": np.array([0, -3]), "depth": np.array(4, np.int64), "values": np.array([-1, 5], np.float32)}
    check(source, to=28, newest=28, feeds=feeds)


@pytest.mark.parametrize("dtype", ["float", "double", "int16", "int32", "int64"])
def test_range(dtype: str) -> None:
    source = f"""<ir_version: 6, opset_import: ["": 11]>
        graph ({dtype} a, {dtype} b, {dtype} d) => ({dtype}[n] y) {{ y = Range (a, b, d) }}"""
    kind = "float32" if dtype == "float" else dtype
    feeds = {name: np.array(value, kind) for name, value in (("a", 10), ("b", -7), ("d", -3))}
    check(source, to=27, feeds=feeds)
