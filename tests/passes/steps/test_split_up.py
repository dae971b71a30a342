from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model

X = np.arange(24, dtype=np.float32).reshape(6, 4)


@pytest.mark.parametrize(
    ("attributes", "shapes"),
    [
        ("", "float[3,4] p, float[3,4] q"),
        ("<axis = 1>", "float[6,2] p, float[6,2] q"),
        ("<axis = 1, split = [1, 3]>", "float[6,1] p, float[6,3] q"),
        ("<split = [6, 0]>", "float[6,4] p, float[0,4] q"),
    ],
)
def test_split(attributes: str, shapes: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 7]> g (float[6,4] x) => ({shapes})
        {{ p, q = Split {attributes} (x) }}"""
    check(source, to=13, feeds={"x": X})
    result = check(source, to=18, feeds={"x": X})
    said = [attribute.i for attribute in result.graph.node[0].attribute if attribute.name == "num_outputs"]
    assert said == ([] if "split" in attributes else [2])


def test_lengths_at_run_time_of_13() -> None:
    source = """<ir_version: 7, opset_import: ["": 13]> g (float[6,4] x, int64[2] s)
        => (float[A,4] p, float[B,4] q)
        { p, q = Split (x, s) }"""
    result = check(source, to=18, feeds={"x": X, "s": np.array([4, 2])})
    assert not result.graph.node[0].attribute


def test_an_input_that_is_omitted_by_an_empty_name() -> None:
    source = model(
        """<ir_version: 7, opset_import: ["": 13]> g (float[6,4] x) => (float[3,4] p, float[3,4] q)
        { p, q = Split (x) }"""
    )
    source.graph.node[0].input.append("")
    check(source, to=18, feeds={"x": X})


def test_lengths_that_are_an_attribute_of_a_function() -> None:
    source = """<ir_version: 8, opset_import: ["": 12, "local": 1]> g (float[6,4] x)
        => (float[A,4] y, float[B,4] z)
        { y, z = local.Parts <lengths = [1, 5]> (x) }
        <opset_import: ["": 12], domain: "local"> Parts <lengths> (a) => (b, c)
        { b, c = Split <split: ints = @lengths> (a) }"""
    check(source, feeds={"x": X}, expected=[X[:1], X[1:]], variants=["plain"])


def test_version_1_with_lengths_as_an_attribute() -> None:
    source = """<ir_version: 3, opset_import: ["": 1]> g (float[6,4] x) => (float[6,1] p, float[6,3] q)
        { p, q = Split <axis = 1, split = [1, 3]> (x) }"""
    check(source, to=7, feeds={"x": X}, expected=[X[:, :1], X[:, 1:]])


def test_version_1_with_constant_lengths() -> None:
    source = """<ir_version: 3, opset_import: ["": 1]> g (float[6,4] x) => (float[1,4] p, float[5,4] q)
        { s = Constant <value = float[2] {1, 5}> () p, q = Split <axis = 0> (x, s) }"""
    check(source, to=7, feeds={"x": X}, expected=[X[:1], X[1:]])


def test_version_1_with_lengths_at_run_time() -> None:
    source = """<ir_version: 3, opset_import: ["": 1]> g (float[6,4] x, float[2] s)
        => (float[A,4] p, float[B,4] q)
        { p, q = Split <axis = 0> (x, s) }"""
    check(source, to=13, feeds={"x": X, "s": np.array([4, 2], np.float32)}, expected=[X[:4], X[4:]])
    with pytest.raises(CannotMigrate) as caught:
        lift(model(source), 12)
    assert caught.value.code == "needs-value"


def test_version_1_without_an_axis_is_assumed() -> None:
    source = """<ir_version: 3, opset_import: ["": 1]> g (float[6,4] x) => (float[3,4] p, float[3,4] q)
        { p, q = Split (x) }"""
    check(source, to=7, feeds={"x": X}, expected=[X[:3], X[3:]])
    _, log = lift(model(source), 7)
    assert log.changes[0].exactness == "assumed"
