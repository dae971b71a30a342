"""TopK up and down, CumSum and CumProd."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import dtype_of
from tests.steps import check, check_down, special_values


def text(attributes: str, dtype: str = "float", opset: int = 11, k: int = 3) -> str:
    return f"""{opset} ({dtype}[4, 6] x) => ({dtype}[] v, int64[] i)
        <int64[1] k = {{{k}}}> {{ v, i = TopK {attributes} (x, k) }}"""


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", ["", ", axis = 0", ", axis = -2"])
@pytest.mark.parametrize("dtype", ["float", "double", "int32"])
def test_order(largest: int, axis: str, dtype: str) -> None:
    source = text(f"<largest = {largest}{axis}>", dtype)
    check_down(source, 10, specials=False)
    check_down(source, 9, 7, variants=("plain", "symbolic", "if"), specials=False)
    ties = np.random.default_rng(1).integers(-2, 3, (4, 6)).astype(dtype_of(dtype))
    if dtype != "int32":
        ties[ties == 0] = -0.0
        ties[0, 1], ties[2, 3], ties[3, 0] = np.inf, -np.inf, np.inf
    check_down(source, 10, feeds={"x": ties})


def test_the_ends_of_int32() -> None:
    x = np.resize(np.array([2**31 - 1, -(2**31), 2**31 - 2, 0, -1], np.int32), (4, 6))
    for largest in (0, 1):
        check_down(text(f"<largest = {largest}>", "int32"), 10, feeds={"x": x})


def test_only_the_indices() -> None:
    source = "11 (float[4, 6] x) => (int64[] i) <int64[1] k = {2}> { v, i = TopK <largest = 0> (x, k) }"
    check_down(source, 10, specials=False)


def test_64_bit_integers_are_refused() -> None:
    check_down(text("", "int64"), 10, refused="no-equal")


def test_results_out_of_order() -> None:
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    best = np.sort(x, axis=1)[:, ::-1][:, :3]
    check_down(text("<sorted = 0>"), 10, feeds={"x": x}, expected=[best, np.argsort(-x, axis=1)[:, :3]])


def test_k_at_run_time() -> None:
    source = "10 (float[4, 6] x, int64[1] k) => (float[] v, int64[] i) { v, i = TopK (x, k) }"
    check_down(
        source, 9, feeds={"x": np.ones((4, 6), np.float32), "k": np.array([2])}, refused="needs-constant"
    )


X = np.array([[3, 1, 3, 2], [0, 5, 5, 5], [-1, -2, np.inf, -np.inf]], np.float32)


@pytest.mark.parametrize(
    ("attributes", "shape"), [("k = 2", "3,2"), ("k = 3, axis = 0", "3,4"), ("k = 1, axis = 1", "3,1")]
)
def test_topk(attributes: str, shape: str) -> None:
    source = f"""7 (float[3,4] x) => (float[{shape}] v, int64[{shape}] i)
        {{ v, i = TopK <{attributes}> (x) }}"""
    check(source, to=10, feeds={"x": X})


def test_k_that_is_an_attribute_of_a_function() -> None:
    source = """9 (float[3,4] x) => (float[3,N] v, int64[3,N] i) { v, i = local.Best <count = 2> (x) }
        <opset_import: ["": 9], domain: "local"> Best <count> (a) => (b, c)
        { b, c = TopK <k: int = @count> (a) }"""
    indices = np.argsort(-X, axis=1, kind="stable")[:, :2]
    expected = [np.take_along_axis(X, indices, 1), indices]
    check(source, to=12, feeds={"x": X}, expected=expected, variants=["plain"])


FLAGS = ["", "<exclusive = 1>", "<reverse = 1>", "<exclusive = 1, reverse = 1>"]
CUM_SUMS = [
    # opset, type, shape, axis, flags, targets, how it is compared
    *((11, "float", "[2,3,7]", f"int32 axis = {{{axis}}}", flags, (10, 9), {}) for flags in FLAGS for axis in (0, 1, 2, -1, -3)),
    (14, "float16", "[3,4]", "int64 axis = {1}", "", (13, 10), {"rtol": 2e-3, "atol": 2e-3, "specials": False}),
    *(
        (11, "float", shape, f"int64 axis = {{{axis}}}", "", (10,), {"variants": ("plain",), "specials": False})
        for shape, axis in (("[0]", 0), ("[2, 0]", 0), ("[2, 0]", 1), ("[0, 2]", 0))
    ),
]  # fmt: skip


@pytest.mark.parametrize(("opset", "dtype", "shape", "axis", "flags", "targets", "how"), CUM_SUMS)
def test_cum_sum(opset: int, dtype: str, shape: str, axis: str, flags: str, targets: Any, how: Any) -> None:
    kind = f"{dtype}{shape}"
    check_down(
        f"{opset} ({kind} x) => ({kind} y) <{axis}> {{ y = CumSum {flags} (x, axis) }}", *targets, **how
    )


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("dtype", ["double", "int32", "int64", "uint32", "uint64"])
def test_cum_sum_of_every_type(dtype: str, flags: str) -> None:
    source = f"11 ({dtype}[12] x) => ({dtype}[12] y) <int64 axis = {{0}}> {{ y = CumSum {flags} (x, axis) }}"
    check_down(source, 10, 9, variants=("plain", "symbolic"))


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("axis", [0, 1, -1, -3])
def test_an_axis_at_run_time(flags: str, axis: int) -> None:
    source = f"11 (float[2,3,4] x, int64 axis) => (float[2,3,4] y) {{ y = CumSum {flags} (x, axis) }}"
    x = np.resize(special_values(np.dtype(np.float32)), (2, 3, 4))
    check_down(source, 10, 9, feeds={"x": x, "axis": np.array(axis, np.int64)})


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("dtype", ["float", "int64", "float16", "double", "int32"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_cum_prod(flags: str, dtype: str, axis: int) -> None:
    x = (np.arange(12).reshape(3, 4) % 5 - 2).astype(dtype_of(dtype))
    values = np.flip(x, axis) if "reverse" in flags else x
    if "exclusive" in flags:
        first, others = values.take([0], axis), values.take(range(x.shape[axis] - 1), axis)
        values = np.concatenate([np.ones_like(first), others], axis)
    expected = np.cumprod(values, axis, dtype=x.dtype)
    expected = np.flip(expected, axis) if "reverse" in flags else expected
    variants = ("plain", "symbolic", "function") if axis < 0 else ("plain", "symbolic", "unranked", "if")
    source = f"""26 ({dtype}[3,4] x) => ({dtype}[3,4] y) <int64 axis = {{{axis}}}>
        {{ y = CumProd {flags} (x, axis) }}"""
    check_down(source, 25, 13, 11, feeds={"x": x}, expected=[expected], variants=variants)
