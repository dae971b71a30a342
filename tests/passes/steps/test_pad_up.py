from __future__ import annotations

import numpy as np
import pytest

from tests.harness import check

X = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize(
    "attributes",
    [
        "pads = [1, 0, 0, 2]",
        "pads = [1, 0, 0, 2], value = 1.5",
        "pads = [1, 0, 0, 2], value = 0.0",
        "pads = [1, -1, 0, 2], value = -2.0",
        'pads = [1, 2, 2, 1], mode = "reflect"',
        'pads = [1, 2, 2, 1], mode = "edge", value = 7.0',
        'pads = [1, 2, 2, 1], mode = "constant", value = 7.0',
    ],
)
@pytest.mark.parametrize("opset", [7, 10])
def test_pad(attributes: str, opset: int) -> None:
    source = f"""<ir_version: 4, opset_import: ["": {opset}]> g (float[3,4] x) => (float[A,B] y)
        {{ y = Pad <{attributes}> (x) }}"""
    result = check(source, to=11, feeds={"x": X})
    given = len(result.graph.node[-1].input)
    assert given == (
        3 if "value" in attributes and "edge" not in attributes and "0.0" not in attributes else 2
    )


@pytest.mark.parametrize(("kind", "dtype"), [("double", np.float64), ("float16", np.float16)])
def test_the_value_has_the_data_type(kind: str, dtype: type[np.floating]) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 10]> g ({kind}[3,4] x) => ({kind}[5,4] y)
        {{ y = Pad <pads = [1, 0, 1, 0], value = 0.1> (x) }}"""
    x = X.astype(dtype)
    expected = np.pad(x, ((1, 1), (0, 0)), constant_values=dtype(np.float32(0.1)))
    check(source, to=13, feeds={"x": x}, expected=[expected])


def test_paddings_of_version_1() -> None:
    source = """<ir_version: 3, opset_import: ["": 1]> g (float[3,4] x) => (float[4,6] y)
        { y = Pad <paddings = [1, 0, 0, 2], value = 3.0> (x) }"""
    check(source, to=7, feeds={"x": X}, expected=[np.pad(X, ((1, 0), (0, 2)), constant_values=3)])


@pytest.mark.parametrize("kind", ["float", "double"])
def test_attributes_that_are_attributes_of_a_function(kind: str) -> None:
    source = f"""<ir_version: 8, opset_import: ["": 10, "local": 1]> g ({kind}[3] x) => ({kind}[N] y)
        {{ y = local.Widen <by = [1, 2], with = 0.5> (x) }}
        <opset_import: ["": 10], domain: "local"> Widen <by, with> (a) => (b)
        {{ b = Pad <pads: ints = @by, value: float = @with> (a) }}"""
    x = np.array([1, 2, 3], np.float32 if kind == "float" else np.float64)
    check(
        source, to=12, feeds={"x": x}, expected=[np.pad(x, (1, 2), constant_values=0.5)], variants=["plain"]
    )


def test_a_function_that_is_called_with_two_types() -> None:
    source = """<ir_version: 8, opset_import: ["": 10, "local": 1]> g (float[1] x, double[1] z)
        => (float[3] y, double[3] w)
        { y = local.Widen (x) w = local.Widen (z) }
        <opset_import: ["": 10], domain: "local"> Widen (a) => (b)
        { b = Pad <pads = [1, 1], value = 0.5> (a) }"""
    x = np.array([2], np.float32)
    wide = np.array([0.5, 2, 0.5])
    feeds = {"x": x, "z": x.astype(np.float64)}
    check(source, to=15, feeds=feeds, expected=[wide.astype(np.float32), wide], variants=["plain"])
