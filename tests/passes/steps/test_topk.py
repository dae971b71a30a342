"""TopK below 11 and 10: the smallest elements, integers, results out of order, and k."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down

KINDS = {"float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64}


def text(attributes: str, dtype: str = "float", opset: int = 11, k: int = 3) -> str:
    return f"""<ir_version: 6, opset_import: ["": {opset}]> graph ({dtype}[4, 6] x) => ({dtype}[] v, int64[] i)
        <int64[1] k = {{{k}}}> {{ v, i = TopK {attributes} (x, k) }}"""


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", ["", ", axis = 0", ", axis = -2"])
@pytest.mark.parametrize("dtype", ["float", "double", "int32"])
def test_order(largest: int, axis: str, dtype: str) -> None:
    source = text(f"<largest = {largest}{axis}>", dtype)
    check_down(source, 10, specials=False)
    check_down(source, 9, 7, variants=("plain", "symbolic", "if"), specials=False)
    ties = np.random.default_rng(1).integers(-2, 3, (4, 6)).astype(KINDS[dtype])
    if dtype != "int32":
        ties[ties == 0] = -0.0
        ties[0, 1], ties[2, 3], ties[3, 0] = np.inf, -np.inf, np.inf
    check_down(source, 10, feeds={"x": ties})


def test_the_ends_of_int32() -> None:
    x = np.resize(np.array([2**31 - 1, -(2**31), 2**31 - 2, 0, -1], np.int32), (4, 6))
    for largest in (0, 1):
        check_down(text(f"<largest = {largest}>", "int32"), 10, feeds={"x": x})


def test_only_the_indices() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (float[4, 6] x) => (int64[] i) <int64[1] k = {2}>
        { v, i = TopK <largest = 0> (x, k) }"""
    check_down(source, 10, specials=False)


def test_64_bit_integers_are_refused() -> None:
    codes = dict.fromkeys(("plain", "symbolic", "unranked", "if", "function"), "no-equal")
    check_down(text("", "int64"), 10, refused=codes)


def test_results_out_of_order() -> None:
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    best = np.sort(x, axis=1)[:, ::-1][:, :3]
    check_down(text("<sorted = 0>"), 10, feeds={"x": x}, expected=[best, np.argsort(-x, axis=1)[:, :3]])


def test_k_at_run_time() -> None:
    source = """<ir_version: 6, opset_import: ["": 10]> graph (float[4, 6] x, int64[1] k) => (float[] v, int64[] i)
        { v, i = TopK (x, k) }"""
    codes = dict.fromkeys(("plain", "symbolic", "unranked", "if", "function"), "needs-constant")
    check_down(source, 9, feeds={"x": np.ones((4, 6), np.float32), "k": np.array([2])}, refused=codes)
