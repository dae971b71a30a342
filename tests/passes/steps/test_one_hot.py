"""OneHot below 11 and 9: axes, types, and indices outside of the depth."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import reference
from tests.lowering import check_down, lower


def text(axis: int | None, index: str, depth: str, value: str, shape: str = "[2, 3]") -> str:
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"""<ir_version: 6, opset_import: ["": 11]>
        graph ({index}{shape} i, {depth} n, {value}[2] v) => ({value} y) {{ y = OneHot {attribute} (i, n, v) }}"""


def feeds(index: Any, depth: Any, values: Any) -> dict[str, np.ndarray[Any, Any]]:
    indices = np.array([[0, 3, -1], [-5, 5, 2]], index)
    return {"i": indices, "n": np.array(5, depth), "v": np.array(values)}


@pytest.mark.parametrize("axis", [None, -1, 0, 1, 2, -2, -3])
def test_axes(axis: int | None) -> None:
    given = feeds(np.int64, np.int64, np.array([-0.0, np.nan], np.float32))
    low = {"unranked": "needs-rank"}
    check_down(
        text(axis, "int64", "int64", "float"), 10, 9, feeds=given, refused=low if axis in (-2, -3) else None
    )
    check_down(text(axis, "int64", "int64", "float"), 8, 7, feeds=given, refused=low)


@pytest.mark.parametrize(
    ("index", "depth", "value"),
    [("int32", "float", "float"), ("int64", "int32", "float"), ("float", "float", "float"), ("int64", "int64", "int64"),
     ("float", "int64", "int64")],
)  # fmt: skip
def test_types(index: str, depth: str, value: str) -> None:
    names = {"float": "float32"}
    given = feeds(
        names.get(index, index), names.get(depth, depth), np.array([7, -2], names.get(value, value))
    )
    check_down(text(None, index, depth, value), 10, 9, 7, feeds=given, variants=("plain", "symbolic", "if"))


def test_narrow_indices() -> None:
    """ONNX Runtime has no kernel of these types."""
    for name in ("int8", "uint8", "int16"):
        given = feeds(np.int64, np.int64, np.array([0, 1], np.float32))
        given["i"] = np.array([[0, 3, 1], [4, 2, 5]]).astype(name)
        if name != "uint8":
            given["i"][0, 0] = -2
        expected = np.vstack([np.eye(5, dtype=np.float32), np.zeros((1, 5), np.float32)])[given["i"] % 6]
        if name != "uint8":
            expected[0, 0] = np.eye(5)[3]
        for target in (10, 9):
            result, _ = lower(text(None, name, "int64", "float"), target)
            [found] = reference(result, given, None)
            np.testing.assert_array_equal(found, expected)


def test_fractions() -> None:
    """By the standard they are cut off; ONNX Runtime finds no place for them."""
    given = feeds(np.float32, np.float32, np.array([0, 1], np.float32))
    given["i"] = np.array([[0.5, -0.5, 1.9], [-1.5, -4.9, 4.9]], np.float32)
    expected = np.eye(5, dtype=np.float32)[given["i"].astype(int)]
    check_down(text(None, "float", "float", "float"), 10, 9, feeds=given, expected=[expected])
    check_down(
        text(None, "float", "float", "float"),
        8,
        7,
        feeds=given,
        expected=[expected],
        refused={"unranked": "needs-rank"},
    )


def test_known_indices_and_depth() -> None:
    known = """<ir_version: 6, opset_import: ["": 11]> graph (float[2] v) => (float[3, 4] y)
        <int64[3] i = {0, 3, 1}, int64[1] n = {4}> { y = OneHot (i, n, v) }"""
    check_down(known, 10, 9, 7)
