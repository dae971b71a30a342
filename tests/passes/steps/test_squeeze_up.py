from __future__ import annotations

import numpy as np
import pytest

from tests.harness import check


@pytest.mark.parametrize(
    ("opset", "attributes", "shape"),
    [
        (7, "<axes = [0, 2]>", "3,1"),
        (11, "<axes = [-2, 0]>", "3,1"),
        (11, "<axes = [3]>", "1,3,1"),
        (7, "", "3"),
        (12, "<axes: ints = []>", "3"),
    ],
)
def test_squeeze(opset: int, attributes: str, shape: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": {opset}]> g (float[1,3,1,1] x)
        => (float[{shape}] y)
        {{ y = Squeeze {attributes} (x) }}"""
    result = check(source, to=13)
    assert not result.graph.node[0].attribute
    assert len(result.graph.node[0].input) == (2 if "[" in attributes and "[]" not in attributes else 1)


@pytest.mark.parametrize(
    ("opset", "axes", "shape"), [(7, "0, 3", "1,2,3,1"), (7, "3, 0", "1,2,3,1"), (11, "-1, 1", "2,1,3,1")]
)
def test_unsqueeze(opset: int, axes: str, shape: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": {opset}]> g (float[2,3] x) => (float[{shape}] y)
        {{ y = Unsqueeze <axes = [{axes}]> (x) }}"""
    check(source, to=13)


def test_axes_that_are_an_attribute_of_a_function() -> None:
    source = """<ir_version: 8, opset_import: ["": 12, "local": 1]> g (float[2] x)
        => (float[1,2,1] y, float[2] z)
        { y = local.Grow <places = [0, 2]> (x) z = local.Shrink <places = [2, 0]> (y) }
        <opset_import: ["": 12], domain: "local"> Grow <places> (a) => (b)
        { b = Unsqueeze <axes: ints = @places> (a) }
        <opset_import: ["": 12], domain: "local"> Shrink <places> (a) => (b)
        { b = Squeeze <axes: ints = @places> (a) }"""
    x = np.array([1, 2], np.float32)
    check(source, feeds={"x": x}, expected=[x[None, :, None], x], variants=["plain"])
