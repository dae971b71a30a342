"""Comparisons and tests of values: every pair of special values of every type."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower, special_values

FLOATS = ["float32", "float64", "float16"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
COMPARED = {
    "Greater": np.greater,
    "Less": np.less,
    "Equal": np.equal,
    "GreaterOrEqual": np.greater_equal,
    "LessOrEqual": np.less_equal,
}


def text(dtype: str) -> str:
    return {"float32": "float", "float64": "double"}.get(dtype, dtype)


def every_pair(operator: str, opset: int, dtype: str, *targets: int, variants: tuple[str, ...]) -> None:
    pool = special_values(np.dtype(dtype))
    if dtype in ("int64", "uint64"):
        near = np.array([2**32, 2**32 - 1, 2**32 + 1, 2**53, 2**53 + 1, 2**62 + 1, 2**62], np.int64)
        pool = np.concatenate([pool, near.astype(dtype), (-near).astype(dtype)])
    a, b = pool[:, None], pool[None, :]
    n = len(pool)
    check_down(
        f"""<ir_version: 4, opset_import: ["": {opset}]> g ({text(dtype)}[{n},1] a, {text(dtype)}[1,{n}] b)
        => (bool[{n},{n}] y) {{ y = {operator} (a, b) }}""",
        *targets,
        feeds={"a": a, "b": b},
        expected=[COMPARED[operator](a, b)],
        variants=variants,
    )


ALL = ("plain", "symbolic", "unranked", "if")


@pytest.mark.parametrize("operator", ["GreaterOrEqual", "LessOrEqual"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_or_equal(operator: str, dtype: str) -> None:
    for opset in (12, 16):
        every_pair(operator, opset, dtype, 11, 10, 8, 7, variants=ALL)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
def test_equal(dtype: str) -> None:
    for opset in (11, 13, 19):
        every_pair("Equal", opset, dtype, 10, 9, 7, variants=ALL)


@pytest.mark.parametrize("operator", ["Greater", "Less"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_ordered(operator: str, dtype: str) -> None:
    every_pair(operator, 9, dtype, 8, 7, variants=ALL)


@pytest.mark.parametrize("operator", ["Equal", "GreaterOrEqual", "LessOrEqual"])
@pytest.mark.parametrize("constant", ["{0.5}", "{nan}"])
def test_a_constant_without_nan_is_not_asked_for_it(operator: str, constant: str) -> None:
    x = special_values(np.dtype(np.float32))
    value = float(constant[1:-1])
    lowered = check_down(
        f"""<ir_version: 7, opset_import: ["": 12]> g (float[{len(x)}] x) => (bool[{len(x)}] y)
        <float[1] half = {constant.replace("nan", "0.0")}> {{ y = {operator} (x, half) }}"""
        if value == value
        else f"""<ir_version: 7, opset_import: ["": 12]> g (float[{len(x)}] x, float[1] half) => (bool[{len(x)}] y)
        {{ y = {operator} (x, half) }}""",
        10,
        feeds={"x": x} if value == value else {"x": x, "half": np.array([value], np.float32)},
        expected=[COMPARED[operator](x, np.float32(value))],
        variants=("plain",),
    )
    tests = [node.op_type for node in lowered.graph.node].count("IsNaN")
    assert tests == (1 if value == value else 2)


def test_functions_are_inlined_for_the_type() -> None:
    for operator in COMPARED:
        check_down(
            f"""<ir_version: 8, opset_import: ["": 16]> g (float[3] a, float[3] b) => (bool[3] y)
            {{ y = {operator} (a, b) }}""",
            10,
            7,
            variants=("function",),
        )


def test_strings_are_refused() -> None:
    with pytest.raises(CannotMigrate):
        lower(
            """<ir_version: 9, opset_import: ["": 19]> g (string[3] a, string[3] b) => (bool[3] y) { y = Equal (a, b) }""",
            10,
        )


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("negative", [0, 1])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_is_inf(positive: int, negative: int, dtype: str) -> None:
    check_down(
        f"""<ir_version: 7, opset_import: ["": 10]> g ({dtype}[3,7] x) => (bool[3,7] y)
        {{ y = IsInf <detect_positive = {positive}, detect_negative = {negative}> (x) }}""",
        9,
        7,
    )


@pytest.mark.parametrize("dtype", ["float", "double", "float16"])
@pytest.mark.parametrize("operator", ["IsNaN", "IsInf"])
def test_is_nan_and_is_inf_from_20(dtype: str, operator: str) -> None:
    check_down(
        f"""<ir_version: 9, opset_import: ["": 20]> g ({dtype}[3,7] x) => (bool[3,7] y) {{ y = {operator} (x) }}""",
        19,
        9,
        8,
        7,
    )


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_sign(dtype: str) -> None:
    check_down(
        f"""<ir_version: 7, opset_import: ["": 9]> g ({text(dtype)}[3,7] x) => ({text(dtype)}[3,7] y) {{ y = Sign (x) }}""",
        8,
        7,
    )


def test_empty_tensors() -> None:
    for operator in COMPARED:
        check_down(
            f"""<ir_version: 7, opset_import: ["": 13]> g (float[0] a, float[0] b) => (bool[0] y) {{ y = {operator} (a, b) }}""",
            7,
            variants=("plain",),
        )
