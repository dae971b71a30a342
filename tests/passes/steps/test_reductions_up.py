"""The ten Reduce operators and ArgMax, ArgMin: axes as attribute and as input."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.harness import check, lift, run

TEN = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def text(operator: str, opset: int, attributes: str, shape: str, dtype: str = "float", ir: int = 4) -> str:
    return f"""<ir_version: {ir}, opset_import: ["": {opset}]>
        graph ({dtype}[2, 3, 4] x) => ({dtype}[{shape}] y) {{ y = Reduce{operator} <{attributes}> (x) }}"""


@pytest.mark.parametrize("operator", TEN)
@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ("keepdims = 1", "1, 1, 1"),
        ("axes = [1]", "2, 1, 4"),
        ("axes = [0, 2], keepdims = 0", "3"),
        ("keepdims = 0", ""),
    ],
)
def test_axes(operator: str, attributes: str, shape: str) -> None:
    values = {"x": np.random.default_rng(3).random((2, 3, 4), np.float32) + 1}
    for opset in (7, 12):
        check(text(operator, opset, attributes, shape), to=18, feeds=values)


@pytest.mark.parametrize("operator", TEN)
def test_negative_axes(operator: str) -> None:
    values = {"x": np.random.default_rng(3).random((2, 3, 4), np.float32) + 1}
    check(text(operator, 11, "axes = [-1, -3]", "1, 3, 1"), to=18, feeds=values)


@pytest.mark.parametrize("operator", ["Sum", "Max"])
def test_an_empty_list_of_axes_means_all_axes(operator: str) -> None:
    source = parser.parse_model(text(operator, 11, "axes = [0]", "1, 1, 1"))
    del source.graph.node[0].attribute[0].ints[:]
    check(source, to=18)


@pytest.mark.parametrize(
    ("operator", "dtype"), [("Sum", "int32"), ("Max", "int64"), ("Max", "int8"), ("Mean", "double")]
)
def test_other_types(operator: str, dtype: str) -> None:
    check(text(operator, 12, "axes = [1]", "2, 1, 4", dtype), to=18)


def test_in_a_model_that_lists_its_initializers() -> None:
    check(text("Mean", 7, "axes = [1]", "2, 1, 4", ir=3), to=18)


def test_axes_that_are_an_attribute_of_a_function() -> None:
    source = """<ir_version: 8, opset_import: ["": 12, "local": 1]>
        graph (float[2, 3, 4] x) => (float[1, 3, 4] y, float[2, 1, 1] z, float[2, 3] w) {
            y = local.F <at = [0]> (x)
            z = local.F <at = [1, 2]> (x)
            w = local.G <at = [-1]> (x)
        }
        <domain: "local", opset_import: ["": 12]> F <at> (a) => (b) { b = ReduceSum <axes: ints = @at> (a) }
        <domain: "local", opset_import: ["": 12]> G <at> (a)
            => (b) { b = ReduceMax <axes: ints = @at, keepdims = 0> (a) }"""
    check(source, to=18, variants=["plain", "symbolic", "if"])


@pytest.mark.parametrize("operator", ["LogSum", "LogSumExp"])
@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_logarithms_of_integers(operator: str, dtype: str) -> None:
    """Only onnx.reference runs opset 28: the expected values are computed by NumPy in double and truncated to integers."""
    x = np.random.default_rng(0).integers(1, 9, (2, 3, 4)).astype(dtype)
    wide = np.exp(x.astype(np.float64)) if operator == "LogSumExp" else x.astype(np.float64)
    expected = np.log(wide.sum(axis=1, keepdims=True)).astype(dtype)
    source = parser.parse_model(text(operator, 13, "axes = [1]", "2, 1, 4", dtype))
    result, log = lift(source, 28)
    assert [node.op_type for node in result.graph.node] == ["Cast", f"Reduce{operator}", "Cast"]
    assert log.changes[0].exactness.value == "equivalent"
    np.testing.assert_array_equal(run(result, {"x": x})[0], expected)


@pytest.mark.parametrize("operator", ["LogSum", "LogSumExp"])
def test_logarithms_of_floats_are_unchanged(operator: str) -> None:
    values = {"x": np.random.default_rng(3).random((2, 3, 4), np.float32) + 1}
    result, _ = lift(parser.parse_model(text(operator, 18, "keepdims = 1", "1, 1, 1")), 28)
    assert [node.op_type for node in result.graph.node] == [f"Reduce{operator}"]
    old = run(parser.parse_model(text(operator, 18, "keepdims = 1", "1, 1, 1")), values)
    np.testing.assert_allclose(run(result, values)[0], old[0], rtol=1e-6)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize(("opset", "attributes"), [(7, "axis = 1"), (7, "keepdims = 1"), (11, "axis = -1")])
def test_arg(operator: str, opset: int, attributes: str) -> None:
    """Of equal values the index of the first is returned at every version."""
    values = {"x": np.random.default_rng(0).integers(0, 3, (2, 3, 4)).astype(np.float32)}
    source = f"""<ir_version: 4, opset_import: ["": {opset}]>
        graph (float[2, 3, 4] x) => (int64[a, b, c] y) {{ y = {operator} <{attributes}> (x) }}"""
    check(source, to=13, feeds=values)


@pytest.mark.parametrize("operator", TEN)
def test_axes_of_a_scalar_are_left_out(operator: str) -> None:
    """ONNX Runtime runs them up to opset 10, and loads none from opset 11 on."""
    source = f"""<ir_version: 4, opset_import: ["": 10]>
        graph (float x) => (float y) {{ y = Reduce{operator} <axes = [0]> (x) }}"""
    result = check(source, to=11, feeds={"x": np.array(2.5, np.float32)}, variants=["plain", "if"])
    assert [item.name for item in result.graph.node[0].attribute] == []
