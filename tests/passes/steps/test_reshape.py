"""Reshape below 14: what a 0 in the shape means."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import MigrateError
from tests.lowering import check_down, lower


def text(shape: list[int], allowzero: int, x: str = "2, 3, 4", dtype: str = "float") -> str:
    given = ", ".join(map(str, shape))
    return f"""<ir_version: 8, opset_import: ["": 14]> graph ({dtype}[{x}] x) => ({dtype}[] y)
        <int64[{len(shape)}] s = {{{given}}}> {{ y = Reshape <allowzero = {allowzero}> (x, s) }}"""


@pytest.mark.parametrize("allowzero", [0, 1])
@pytest.mark.parametrize("shape", [[6, 4], [-1], [2, -1, 2]], ids=str)
def test_no_zero(shape: list[int], allowzero: int) -> None:
    check_down(text(shape, allowzero), 13, 12, 7, refused=None)
    assert {change.exactness.value for change in lower(text(shape, allowzero), 13)[1].changes} <= {"exact"}


def test_a_zero_that_keeps_a_length() -> None:
    check_down(text([0, -1], 0), 13, 7)


@pytest.mark.parametrize("shape", [[0, 5], [3, 0, 2], [0]], ids=str)
@pytest.mark.parametrize("dtype", ["float", "int64", "bool", "float16"])
def test_a_zero_that_is_a_length(shape: list[int], dtype: str) -> None:
    kind = {"float": np.float32, "int64": np.int64, "bool": np.bool_, "float16": np.float16}[dtype]
    feeds = {"x": np.zeros((2, 0, 4), kind)}
    check_down(text(shape, 1, "2, 0, 4", dtype), 13, 12, 9, 7, feeds=feeds)


def test_a_zero_beside_a_minus_one_is_invalid() -> None:
    with pytest.raises(MigrateError, match="forbids"):
        lower(text([0, -1], 1), 13)


@pytest.mark.parametrize("batch", [0, 1, 3])
def test_one_length_at_run_time(batch: int) -> None:
    source = """<ir_version: 8, opset_import: ["": 14]> graph (float[N, 6] x) => (float[] y)
        <int64[1] i = {0}, int64[2] r = {3, 2}>
        { s = Shape (x)  n = Gather (s, i)  t = Concat <axis = 0> (n, r)  y = Reshape <allowzero = 1> (x, t) }"""
    feeds = {"x": np.random.default_rng(0).random((batch, 6)).astype(np.float32)}
    check_down(source, 13, 11, feeds=feeds, variants=("plain", "if", "function"))
    assert {change.exactness.value for change in lower(source, 13)[1].changes} == {"exact"}


@pytest.mark.parametrize("size", [(2, 6), (0, 6), (2, 0)])
def test_a_shape_at_run_time(size: tuple[int, int]) -> None:
    source = """<ir_version: 8, opset_import: ["": 14]> graph (float[N, M] x, int64[2] s) => (float[] y)
        { y = Reshape <allowzero = 1> (x, s) }"""
    feeds = {"x": np.ones(size, np.float32), "s": np.array([3, 4] if all(size) else [5, 0])}
    check_down(source, 13, 9, 7, feeds=feeds, variants=("plain", "unranked", "if", "function"))
    assert {change.exactness.value for change in lower(source, 13)[1].changes} == {"assumed"}
    known = source.replace("[N, M]", "[2, 6]")
    assert {change.exactness.value for change in lower(known, 13)[1].changes} == {"exact"}


@pytest.mark.parametrize("size", [(2, 3), (0, 3), (0, 0)])
def test_lengths_that_stay_at_their_place(size: tuple[int, int]) -> None:
    source = """<ir_version: 8, opset_import: ["": 18]> graph (float[N, M, 6] x) => (float[N, M, 3, 2] y) <int64[2] r = {3, 2}>
        { n = Shape <end = 1> (x)  m = Shape <start = 1, end = 2> (x)  t = Concat <axis = 0> (n, m, r)
          y = Reshape <allowzero = 1> (x, t) }"""
    feeds = {"x": np.random.default_rng(0).random((*size, 6)).astype(np.float32)}
    check_down(source, 13, 11, feeds=feeds, variants=("plain", "if"))
    assert {change.exactness.value for change in lower(source, 13)[1].changes} == {"exact"}


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", ["int64", "int32", "bool", "float"])
def test_flatten(axis: int, dtype: str) -> None:
    source = f"""<ir_version: 4, opset_import: ["": 9]> graph ({dtype}[2, 3, 4] x) => ({dtype}[] y)
        {{ y = Flatten <axis = {axis}> (x) }}"""
    check_down(source, 8, 7)


def test_flatten_of_an_empty_tensor() -> None:
    source = """<ir_version: 4, opset_import: ["": 9]> graph (int64[2, 0, 4] x) => (int64[] y) { y = Flatten (x) }"""
    check_down(source, 8, variants=("plain",))


def test_an_input_that_is_known_to_be_empty() -> None:
    source = """<ir_version: 8, opset_import: ["": 14]> graph (int64[0, 3, 4] x, int64[3] s) => (int64[] y)
        { y = Reshape <allowzero = 1> (x, s) }"""
    feeds = {"x": np.zeros((0, 3, 4), np.int64), "s": np.array([3, 4, 0])}
    check_down(source, 13, 9, feeds=feeds, variants=("plain", "if", "function"))
