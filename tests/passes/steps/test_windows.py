"""HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix below 17."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower

WINDOWS = ("HannWindow", "HammingWindow", "BlackmanWindow")
ATOL = 1e-6


@pytest.mark.parametrize("operator", WINDOWS)
@pytest.mark.parametrize(
    "attributes", ["", "<periodic = 0>", "<periodic = 1, output_datatype = 11>", "<output_datatype = 10>"]
)
@pytest.mark.parametrize("size", [1, 6])
def test_windows(operator: str, attributes: str, size: int) -> None:
    if size == 1 and "periodic = 0" in attributes:
        return  # 0 / 0
    kind = "double" if "11" in attributes else "float16" if "10" in attributes else "float"
    atol = 1e-3 if kind == "float16" else ATOL
    known = f"""<ir_version: 8, opset_import: ["": 17]>
        graph (float x) => ({kind}[{size}] y) <int64 n = {{{size}}}> {{ y = {operator} {attributes} (n) }}"""
    feeds = {"x": np.zeros((), np.float32)}
    check_down(known, 16, 9, 7, feeds=feeds, atol=atol)
    for dtype in ("int64", "int32"):
        computed = f"""<ir_version: 8, opset_import: ["": 17]>
            graph ({dtype} n) => ({kind}[size] y) {{ y = {operator} {attributes} (n) }}"""
        check_down(computed, 16, 9, feeds={"n": np.array(size, dtype)}, atol=atol)


@pytest.mark.parametrize("operator", WINDOWS[:2])
def test_integers(operator: str) -> None:
    """The middle of a window is 1, and all else is cut to 0."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> graph (float x) => (int32[7] y)
        <int64 n = {{7}}> {{ y = {operator} <periodic = 0, output_datatype = 6> (n) }}"""
    check_down(
        text, 16, feeds={"x": np.zeros((), np.float32)}, expected=[np.array([0, 0, 0, 1, 0, 0, 0], np.int32)]
    )


@pytest.mark.parametrize(
    ("bands", "length", "rate", "lower", "upper"),
    [(8, 16, 8192, 0, 4096), (20, 400, 16000, 20, 8000), (80, 400, 16000, 0, 8000), (3, 64, 8000, 0, 100)],
)
@pytest.mark.parametrize("attributes", ["", "<output_datatype = 11>"])
def test_mel_weight_matrix(
    bands: int, length: int, rate: int, lower: int, upper: int, attributes: str
) -> None:
    kind = "double" if attributes else "float"
    text = f"""<ir_version: 8, opset_import: ["": 17]> graph (float x) => ({kind} y)
        <int64 bands = {{{bands}}}, int64 n = {{{length}}}, int64 rate = {{{rate}}},
         float lower = {{{lower}}}, float upper = {{{upper}}}>
        {{ y = MelWeightMatrix {attributes} (bands, n, rate, lower, upper) }}"""
    check_down(text, 16, 9, 7, feeds={"x": np.zeros((), np.float32)}, atol=ATOL)


def test_a_matrix_that_is_computed_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> graph (int64 bands) => (float y)
        <int64 n = {16}, int64 rate = {8000}, float lower = {0}, float upper = {4000}>
        { y = MelWeightMatrix (bands, n, rate, lower, upper) }"""
    for variant in ("plain", "if", "function"):
        check_down(
            text, 16, feeds={"bands": np.array(4)}, refused={variant: "needs-constant"}, variants=(variant,)
        )


def test_a_window_of_a_size_without_end_is_computed_at_run_time() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> graph (float x) => (float[n] y)
        <int64 n = {1099511627776}> { y = HannWindow (n) }"""
    assert "Cos" in {node.op_type for node in lower(text, 16)[0].graph.node}


def test_a_matrix_without_end_is_refused() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> graph (float x) => (float y)
        <int64 bands = {1048576}, int64 n = {1048576}, int64 rate = {8000}, float lower = {0}, float upper = {4000}>
        { y = MelWeightMatrix (bands, n, rate, lower, upper) }"""
    with pytest.raises(CannotMigrate, match="a matrix of 524289 by 1048576") as caught:
        lower(text, 16)
    assert caught.value.code == "no-equal"
