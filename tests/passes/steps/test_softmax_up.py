"""Softmax, LogSoftmax and Hardmax 11 → 13: every axis of every rank."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.harness import check, lift, run

OPERATORS = ("Softmax", "LogSoftmax", "Hardmax")


def text(operator: str, opset: int, shape: list[int], axis: int | None, dtype: str = "float") -> str:
    dims = ", ".join(map(str, shape))
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"""<ir_version: 4, opset_import: ["": {opset}]>
        graph ({dtype}[{dims}] x) => ({dtype}[{dims}] y) {{ y = {operator} {attribute} (x) }}"""


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("shape", [[4], [3, 4], [2, 3, 4], [2, 3, 4, 2], [2, 3, 1, 1]], ids=str)
def test_every_axis(operator: str, shape: list[int]) -> None:
    for axis in range(len(shape)):
        check(text(operator, 7, shape, axis), to=13)
        check(text(operator, 11, shape, axis - len(shape)), to=13)
    if len(shape) > 1:
        check(text(operator, 7, shape, None), to=13)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_other_types(operator: str, dtype: str) -> None:
    check(text(operator, 11, [2, 3, 4], 1, dtype), to=13)


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_hardmax_of_other_types(dtype: str) -> None:
    """onnx.reference runs it, and does not flatten at version 11: the expected values are computed with NumPy."""
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype("half" if dtype == "float16" else dtype)
    expected = np.eye(12, dtype=x.dtype)[x.reshape(2, 12).argmax(axis=1)].reshape(x.shape)
    for target in (13, 26):
        result, _ = lift(parser.parse_model(text("Hardmax", 11, [2, 3, 4], 1, dtype)), target)
        np.testing.assert_array_equal(run(result, {"x": x})[0], expected)


def test_version_1() -> None:
    check(text("Softmax", 1, [2, 5], None), to=13)


@pytest.mark.parametrize(
    ("shape", "axis", "written"), [([2, 3], None, 1), ([2, 3, 1, 1], 1, 1), ([2, 3], -1, -1)]
)
def test_if_one_axis_is_normalised_no_node_is_added(shape: list[int], axis: int | None, written: int) -> None:
    result = check(text("Softmax", 11, shape, axis), to=13)
    (node,) = result.graph.node
    assert [(attribute.name, attribute.i) for attribute in node.attribute] == [("axis", written)]


def test_axis_1_of_a_vector() -> None:
    """Version 11 flattens a vector at axis 1 to a matrix of one column, so every row has one element."""
    source = parser.parse_model(text("Softmax", 7, [4], None))
    for target in (13, 26):
        result, _ = lift(source, target)
        np.testing.assert_array_equal(run(result, {"x": np.arange(4, dtype=np.float32)})[0], np.ones(4))


@pytest.mark.parametrize("shape", [[2, 3, 0], [0, 3, 4], [2, 0, 4]], ids=str)
def test_an_empty_tensor(shape: list[int]) -> None:
    check(text("Softmax", 11, shape, 1), to=14)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_axis_that_is_an_attribute_of_a_function(axis: int) -> None:
    source = f"""<ir_version: 8, opset_import: ["": 11, "local": 1]>
        graph (float[2, 3, 4] x) => (float[2, 3, 4] y, float[2, 3, 4] z) {{
            y = local.F <at = {axis}> (x)
            z = local.F <at = {(axis + 1) % 3}> (x)
        }}
        <domain: "local", opset_import: ["": 11]> F <at> (a) => (b) {{ b = Softmax <axis: int = @at> (a) }}"""
    check(source, to=13, variants=["plain", "symbolic", "if"])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_tensor_that_is_known_to_be_empty_keeps_its_axis(axis: int) -> None:
    """At opset 13 no Reshape writes dims of 0."""
    result = check(text("LogSoftmax", 11, [2, 3, 0], axis), to=13, variants=["plain", "if"])
    (node,) = result.graph.node
    assert [(attribute.name, attribute.i) for attribute in node.attribute] == [("axis", axis)]
