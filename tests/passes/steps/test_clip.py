"""Clip, Max and Min of every type, with known, missing and run-time bounds."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import model
from tests.lowering import check_down, lower, special_values

FLOATS = ["float", "double", "float16"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def dtype_of(name: str) -> np.dtype:  # type: ignore[type-arg]
    return np.dtype({"float": "float32", "double": "float64"}.get(name, name))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("bounds", ["low, high", "low", '"", high', ""])
def test_constant_bounds(dtype: str, bounds: str) -> None:
    inputs = f"x, {bounds}" if bounds else "x"
    used = [name for name in ("low", "high") if name in bounds]
    values = {"low": "1.5" if dtype in FLOATS else "2", "high": "2.5" if dtype in FLOATS else "5"}
    plain = "float" if dtype == "float16" else dtype  # onnx's parser reads no float16
    suffix = "_wide" if dtype == "float16" else ""
    initializers = ", ".join(f"{plain} {name}{suffix} = {{{values[name]}}}" for name in used)
    declared = f"<{initializers}>" if used else ""
    casts = " ".join(f"{name} = Cast <to = 10> ({name}_wide)" for name in used if suffix)
    x = special_values(dtype_of(dtype))
    source = f"""<ir_version: 7, opset_import: ["": 13]> g ({dtype}[{len(x)}] x) => ({dtype}[{len(x)}] y) {declared}
        {{ {casts} y = Clip ({inputs.replace('""', "")}) }}"""
    check_down(source, 12, 11, 10, 9, 8, feeds={"x": x}, variants=("plain",))
    last = 8 if dtype == "double" else 7
    check_down(source, 10, last, feeds={"x": x}, variants=("plain", "symbolic", "unranked", "if", "function"))


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("bounds", ["low, high", "low", '"", high'])
def test_bounds_at_run_time(dtype: str, bounds: str) -> None:
    x = special_values(dtype_of(dtype))
    for low, high in ((1, 3), (3, 1)):
        used = [name for name in ("low", "high") if name in bounds]
        given = {
            name: np.array(value, x.dtype) for name, value in (("low", low), ("high", high)) if name in used
        }
        arguments = ", ".join(f"{dtype} {name}" for name in used)
        check_down(
            f"""<ir_version: 7, opset_import: ["": 13]> g ({dtype}[{len(x)}] x, {arguments}) => ({dtype}[{len(x)}] y)
            {{ y = Clip (x, {bounds.replace('""', "")}) }}""",
            12,
            11,
            10,
            8,
            feeds={"x": x, **given},
            variants=("plain", "unranked", "if"),
        )


def test_a_bound_that_float32_does_not_hold() -> None:
    x = np.array([0.05, 0.1, 0.2], np.float64)
    check_down(
        """<ir_version: 7, opset_import: ["": 12]> g (double[3] x) => (double[3] y) <double low = {0.1}> { y = Clip (x, low) }""",
        10,
        feeds={"x": x},
    )


def test_a_bound_that_can_be_overridden_stays_an_input() -> None:
    check_down(
        """<ir_version: 7, opset_import: ["": 11]> g (float[3] x, float low = {0.5}) => (float[3] y) { y = Clip (x, low) }""",
        10,
        feeds={"x": np.array([-1, 1, 3], np.float32), "low": np.array(2, np.float32)},
        variants=("plain",),
    )


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_max_and_min(operator: str, dtype: str) -> None:
    pool = special_values(dtype_of(dtype))
    n = len(pool)
    a, b = pool[:, None], pool[None, :]
    kernel = dtype not in ("int16", "uint16")
    for arguments in ("a, b", "a", "a, b, a"):
        many = arguments != "a"
        expected = (np.maximum if operator == "Max" else np.minimum)(a, b) if many else a
        check_down(
            f"""<ir_version: 7, opset_import: ["": 13]> g ({dtype}[{n},1] a, {dtype}[1,{n}] b)
            => ({dtype}[{n},{n if many else 1}] y) {{ y = {operator} ({arguments}) }}""",
            12,
            11,
            8,
            feeds={"a": a, "b": b},
            expected=None if kernel else [expected],
            atol=1e-30
            if dtype == "float16"
            else 0,  # its kernels of version 13 and 8 differ in the sign of Max(0, -0)
            variants=("plain", "symbolic", "unranked", "if"),
        )


def test_max_of_integers_at_7() -> None:
    for dtype in INTEGERS:
        check_down(
            f"""<ir_version: 7, opset_import: ["": 13]> g ({dtype}[3] a, {dtype}[3] b) => ({dtype}[3] y) {{ y = Max (a, b) }}""",
            7,
            variants=("plain",),
            expected=[np.array([3, 2, 5], dtype)],
            feeds={"a": np.array([3, 1, 5], dtype), "b": np.array([2, 2, 5], dtype)},
        )


def test_empty_tensors() -> None:
    for dtype in ("float", "int64", "int32"):
        check_down(
            f"""<ir_version: 7, opset_import: ["": 13]> g ({dtype}[0] x, {dtype} low) => ({dtype}[0] y, {dtype}[0] z)
            {{ y = Clip (x, low) z = Max (x, low) }}""",
            10,
            variants=("plain",),
        )


def test_an_input_that_is_left_out_at_the_end_stays_where_nothing_changes() -> None:
    source = model(
        '<ir_version: 7, opset_import: ["": 12]> g (float[2] x, float low) => (float[2] y) { y = Clip (x, low, "") }'
    )
    lowered, log = lower(source, 11)
    assert list(lowered.graph.node[0].input) == ["x", "low", ""]
    assert not log.changes
