"""Softmax, LogSoftmax and Hardmax: every axis of every rank, up and down."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import dtype_of, run
from tests.steps import check, check_down, lift

OPERATORS = pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])


def text(operator: str, opset: int, shape: list[int], axis: int | None, dtype: str = "float") -> str:
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"{opset} ({dtype}{shape} x) => ({dtype}{shape} y) {{ y = {operator} {attribute} (x) }}"


@OPERATORS
@pytest.mark.parametrize("shape", [[4], [3, 4], [2, 3, 4], [2, 3, 4, 2]], ids=str)
def test_down(operator: str, shape: list[int]) -> None:
    for axis in (*range(-len(shape), len(shape)), None):
        refused = {"unranked": "needs-rank"} if axis not in (-1, None) else None
        check_down(text(operator, 13, shape, axis), 12, 11, refused=refused)
    check_down(text(operator, 13, shape, len(shape) - 1), 10, 7, variants=("plain", "symbolic"))


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
def test_double_down(operator: str) -> None:
    check_down(text(operator, 13, [2, 3, 4], 1, "double"), 12, variants=("plain",))


@OPERATORS
@pytest.mark.parametrize("shape", [[4], [3, 4], [2, 3, 4], [2, 3, 4, 2], [2, 3, 1, 1]], ids=str)
def test_up(operator: str, shape: list[int]) -> None:
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
@pytest.mark.parametrize("target", [13, 26])
def test_hardmax_of_other_types(dtype: str, target: int) -> None:
    """onnx.reference runs it, and does not flatten at version 11: the expected values are computed with NumPy."""
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(dtype_of(dtype))
    expected = np.eye(12, dtype=x.dtype)[x.reshape(2, 12).argmax(axis=1)].reshape(x.shape)
    result, _ = lift(text("Hardmax", 11, [2, 3, 4], 1, dtype), target)
    np.testing.assert_array_equal(run(result, {"x": x})[0], expected)


def test_version_1() -> None:
    check(text("Softmax", 1, [2, 5], None), to=13)


@pytest.mark.parametrize(
    ("operator", "shape", "axis", "written", "variants"),
    [
        ("Softmax", [2, 3], None, 1, None),
        ("Softmax", [2, 3, 1, 1], 1, 1, None),
        ("Softmax", [2, 3], -1, -1, None),
        # A tensor that is known to be empty keeps its axis: at opset 13 no Reshape writes dims of 0.
        *(("LogSoftmax", [2, 3, 0], axis, axis, ["plain", "if"]) for axis in (0, 1, 2)),
    ],
)
def test_if_one_axis_is_normalised_no_node_is_added(
    operator: str, shape: list[int], axis: int | None, written: int, variants: list[str] | None
) -> None:
    result = check(text(operator, 11, shape, axis), to=13, **({"variants": variants} if variants else {}))
    (node,) = result.graph.node
    assert [(attribute.name, attribute.i) for attribute in node.attribute] == [("axis", written)]


@pytest.mark.parametrize("target", [13, 26])
def test_axis_1_of_a_vector(target: int) -> None:
    """Version 11 flattens a vector at axis 1 to a matrix of one column, so every row has one element."""
    result, _ = lift(text("Softmax", 7, [4], None), target)
    np.testing.assert_array_equal(run(result, {"x": np.arange(4, dtype=np.float32)})[0], np.ones(4))


@pytest.mark.parametrize("shape", [[2, 3, 0], [0, 3, 4], [2, 0, 4]], ids=str)
def test_an_empty_tensor(shape: list[int]) -> None:
    check(text("Softmax", 11, shape, 1), to=14)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_axis_that_is_an_attribute_of_a_function(axis: int) -> None:
    source = f"""11 (float[2, 3, 4] x) => (float[2, 3, 4] y, float[2, 3, 4] z) {{
            y = local.F <at = {axis}> (x)  z = local.F <at = {(axis + 1) % 3}> (x) }}
        <domain: "local", opset_import: ["": 11]> F <at> (a) => (b) {{ b = Softmax <axis: int = @at> (a) }}"""
    check(source, to=13, variants=["plain", "symbolic", "if"])
