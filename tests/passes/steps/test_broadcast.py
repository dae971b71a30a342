"""Expand below 8, and Max, Mean, Min and Sum of several shapes below 8."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down

KINDS = {
    "float": np.float32, "double": np.float64, "int64": np.int64, "bool": np.bool_, "int8": np.int8, "float16": np.float16,
}  # fmt: skip


def expand(x: list[int], shape: list[int], dtype: str = "float") -> str:
    return f"""<ir_version: 3, opset_import: ["": 8]> graph ({dtype}{x or ""} x, int64[{len(shape)}] s) => ({dtype}[] y)
        <int64[{len(shape)}] s = {{{", ".join(map(str, shape))}}}> {{ y = Expand (x, s) }}"""


@pytest.mark.parametrize(
    ("x", "shape"),
    [([3, 1], [3, 4]), ([1], [2, 3]), ([], [2, 2]), ([2, 3], [1]), ([3], [3]), ([1, 2], [3, 1, 2])],
)
@pytest.mark.parametrize("dtype", ["float", "double", "int64", "bool"])
def test_expand(x: list[int], shape: list[int], dtype: str) -> None:
    count = int(np.prod(x))
    values = np.array(
        [0.5, -0.0, np.nan, np.inf, -1.0, 3.0][:count] if dtype in ("float", "double") else range(count)
    )
    feeds = {"x": values.reshape(x).astype(KINDS[dtype])}
    check_down(expand(x, shape, dtype), 7, feeds=feeds, variants=("plain", "symbolic", "unranked", "if"))


def test_expand_of_small_integers() -> None:
    feeds = {"x": np.array([[1], [2], [3]], np.int8)}
    check_down(expand([3, 1], [3, 2], "int8"), 7, feeds=feeds, variants=("plain", "symbolic"))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [[3, 2], [1], [2, 3, 1], [0]])
def test_expand_at_run_time(dtype: str, shape: list[int]) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 8]> graph ({dtype}[3, 1] x, int64[{len(shape)}] s) => ({dtype}[] y)
        {{ y = Expand (x, s) }}"""
    feeds = {"x": np.array([[1], [0], [7]]).astype(KINDS[dtype]), "s": np.array(shape)}
    check_down(source, 7, feeds=feeds, variants=("plain", "symbolic", "unranked", "if"))


def test_expand_of_strings_at_run_time_is_refused() -> None:
    source = """<ir_version: 4, opset_import: ["": 8]> graph (string[3, 1] x, int64[2] s) => (string[] y) { y = Expand (x, s) }"""
    feeds = {"x": np.array([["a"], ["b"], ["c"]], object), "s": np.array([3, 2])}
    check_down(source, 7, feeds=feeds, refused={"plain": "needs-constant"}, variants=("plain",))


def several(operator: str, shapes: list[list[int]], dtype: str = "float") -> str:
    names = [f"x{index}" for index in range(len(shapes))]
    declared = ", ".join(f"{dtype}{shape or ''} {name}" for shape, name in zip(shapes, names, strict=True))
    return f"""<ir_version: 3, opset_import: ["": 8]> graph ({declared}) => ({dtype}[] y)
        {{ y = {operator} ({", ".join(names)}) }}"""


@pytest.mark.parametrize("operator", ["Sum", "Mean", "Max", "Min"])
@pytest.mark.parametrize(
    "shapes",
    [[[2, 3]], [[2, 3], [2, 3]], [[2, 3], [3]], [[2, 1], [3], [4, 1, 1]], [[], [2, 3], [2, 3]]],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_shapes(operator: str, shapes: list[list[int]], dtype: str) -> None:
    fixed = operator in ("Max", "Min") and len(shapes) > 1
    if (
        dtype == "double"
    ):  # ONNX Runtime has no kernels for version 8, and onnx.reference computes only some of them
        feeds = {f"x{i}": np.random.default_rng(i).standard_normal(shape) for i, shape in enumerate(shapes)}
        arrays = np.broadcast_arrays(*feeds.values())
        functions = {"Max": np.max, "Min": np.min, "Sum": np.sum, "Mean": np.mean}
        expected = [functions[operator](np.stack(arrays), axis=0)]
        source = several(operator, shapes, dtype)
        check_down(source, 7, feeds=feeds, expected=expected, variants=("plain",), rtol=1e-14)
        return
    variants = ("plain", "symbolic", "unranked", "if")
    atol = 1e-30 if fixed else 0.0  # the sign of a zero is left open
    check_down(several(operator, shapes, dtype), 7, variants=variants, atol=atol)
