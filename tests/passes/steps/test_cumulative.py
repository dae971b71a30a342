"""CumSum and CumProd along every axis, in both directions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down, special_values

FLAGS = ["", "<exclusive = 1>", "<reverse = 1>", "<exclusive = 1, reverse = 1>"]


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_cum_sum_along_every_axis(flags: str, axis: int) -> None:
    check_down(
        f"""<ir_version: 7, opset_import: ["": 11]> g (float[2,3,7] x) => (float[2,3,7] y) <int32 axis = {{{axis}}}>
        {{ y = CumSum {flags} (x, axis) }}""",
        10,
        9,
    )


@pytest.mark.parametrize("dtype", ["double", "int32", "int64", "uint32", "uint64"])
def test_cum_sum_of_every_type(dtype: str) -> None:
    for flags in FLAGS:
        check_down(
            f"""<ir_version: 7, opset_import: ["": 11]> g ({dtype}[12] x) => ({dtype}[12] y) <int64 axis = {{0}}>
            {{ y = CumSum {flags} (x, axis) }}""",
            10,
            9,
            variants=("plain", "symbolic"),
        )


def test_cum_sum_of_half_floats() -> None:
    check_down(
        """<ir_version: 7, opset_import: ["": 14]> g (float16[3,4] x) => (float16[3,4] y) <int64 axis = {1}>
        { y = CumSum (x, axis) }""",
        13,
        10,
        rtol=2e-3,
        atol=2e-3,
        specials=False,
    )


def test_empty_tensors() -> None:
    for shape, axis in (([0], 0), ([2, 0], 0), ([2, 0], 1), ([0, 2], 0)):
        check_down(
            f"""<ir_version: 7, opset_import: ["": 11]> g (float{shape} x) => (float{shape} y) <int64 axis = {{{axis}}}>
            {{ y = CumSum (x, axis) }}""",
            10,
            variants=("plain",),
            specials=False,
        )


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_an_axis_at_run_time(flags: str, axis: int) -> None:
    check_down(
        f"""<ir_version: 7, opset_import: ["": 11]> g (float[2,3,4] x, int64 axis) => (float[2,3,4] y)
        {{ y = CumSum {flags} (x, axis) }}""",
        10,
        9,
        feeds={
            "x": np.resize(special_values(np.dtype(np.float32)), (2, 3, 4)),
            "axis": np.array(axis, np.int64),
        },
    )


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("dtype", ["float", "int64", "float16", "double", "int32"])
def test_cum_prod(flags: str, dtype: str) -> None:
    x = (np.arange(12).reshape(3, 4) % 5 - 2).astype(
        np.dtype({"float": "float32", "double": "float64"}.get(dtype, dtype))
    )
    for axis in (0, 1, -1):
        values = np.flip(x, axis) if "reverse" in flags else x
        if "exclusive" in flags:
            values = np.concatenate(
                [np.ones_like(values.take([0], axis)), values.take(range(x.shape[axis] - 1), axis)], axis
            )
        expected = np.cumprod(values, axis, dtype=x.dtype)
        expected = np.flip(expected, axis) if "reverse" in flags else expected
        check_down(
            f"""<ir_version: 13, opset_import: ["": 26]> g ({dtype}[3,4] x) => ({dtype}[3,4] y) <int64 axis = {{{axis}}}>
            {{ y = CumProd {flags} (x, axis) }}""",
            25,
            13,
            11,
            feeds={"x": x},
            expected=[expected],
            variants=("plain", "symbolic", "function")
            if axis < 0
            else ("plain", "symbolic", "unranked", "if"),
        )
