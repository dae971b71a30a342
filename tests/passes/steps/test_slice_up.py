from __future__ import annotations

import numpy as np
import pytest

from tests.harness import check

CASES = [
    "starts = [1], ends = [3]",
    "starts = [0, 1], ends = [2, -1]",
    "starts = [0, 1, 2, 3], ends = [9223372036854775807, 2147483647, 3, -1]",
    "starts = [-2, 1], ends = [9, 3], axes = [3, 1]",
    "starts = [-100], ends = [100], axes = [2]",
    "starts = [2], ends = [1], axes = [1]",
]


@pytest.mark.parametrize("attributes", CASES)
@pytest.mark.parametrize("opset", [7, 9])
def test_slice(attributes: str, opset: int) -> None:
    source = f"""<ir_version: 4, opset_import: ["": {opset}]> g (float[3,4,5,6] x) => (float[A,B,C,D] y)
        {{ y = Slice <{attributes}> (x) }}"""
    result = check(source, to=10)
    assert not result.graph.node[-1].attribute
    assert len(result.graph.node[-1].input) == 4  # axes are always set


@pytest.mark.parametrize("axes", ["", "axes = [0], "])
def test_starts_that_are_an_attribute_of_a_function(axes: str) -> None:
    source = f"""<ir_version: 8, opset_import: ["": 9, "local": 1]> g (float[5] x) => (float[N] y)
        {{ y = local.Part <at = [1], till = [-1]> (x) }}
        <opset_import: ["": 9], domain: "local"> Part <at, till> (a) => (b)
        {{ b = Slice <{axes}starts: ints = @at, ends: ints = @till> (a) }}"""
    x = np.arange(5, dtype=np.float32)
    check(source, to=12, feeds={"x": x}, expected=[x[1:-1]], variants=["plain"])


@pytest.mark.parametrize("axis", [0, 2])
def test_gather(axis: int) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 7]> g (float[2,3,4] x, int64[2] i) => (float[A,B,C] y)
        {{ y = Gather <axis = {axis}> (x, i) }}"""
    check(source, to=11, feeds={"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4), "i": np.array([1, 0])})
