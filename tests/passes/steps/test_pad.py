"""Pad below 18 and 11: axes, pads and values at run time, and types."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down, lower
from tests.passes.steps.pads import KINDS, feeds, text


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("axes", [[1], [0], [-1], [1, 0], []], ids=str)
def test_axes(mode: str, axes: list[int]) -> None:
    pads = [1, 2, 0, 3][: 2 * len(axes)]
    source = text(18, f'<mode = "{mode}">', pads, axes=axes, value="2.5" if mode == "constant" else "")
    check_down(source, 17, 13, 11)
    check_down(source, 9, variants=("plain", "symbolic", "if"))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_pads_and_axes_at_run_time(dtype: str) -> None:
    source = f"""<ir_version: 8, opset_import: ["": 18]>
        graph (float[4, 5] x, int64[2] p, {dtype}[1] a) => (float[] y) {{ y = Pad (x, p, , a) }}"""
    for axis in (0, 1, -1, -2):
        check_down(source, 17, feeds=feeds() | {"p": np.array([1, 2]), "a": np.array([axis], KINDS[dtype])})


def test_pads_at_run_time_of_known_axes() -> None:
    source = """<ir_version: 8, opset_import: ["": 18]> graph (float[4, 5] x, int64[2] p) => (float[] y)
        <int64[1] a = {-1}> { y = Pad (x, p, , a) }"""
    check_down(source, 17, 13, feeds=feeds() | {"p": np.array([1, 2])})


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("pads", [[1, 2, 0, 3], [-1, 2, 0, -2], [-2, -1, 1, 1], [0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("dtype", ["float", "double", "int32", "int64", "uint8"])
def test_constant_pads(mode: str, pads: list[int], dtype: str) -> None:
    source = text(11, f'<mode = "{mode}">', pads, value="3" if mode == "constant" else "", dtype=dtype)
    check_down(source, 10, feeds=feeds(dtype), variants=("plain", "symbolic", "if", "function"))
    check_down(source, 9, 8, feeds=feeds(dtype), variants=("plain",))
    if dtype in ("float", "double"):
        check_down(source, 10, 7, feeds=feeds(dtype))
        assert [node.op_type for node in lower(source, 10)[0].graph.node] == ["Pad"]


@pytest.mark.parametrize("value", ["0.1", "1e300"])
def test_a_double_that_float32_does_not_hold(value: str) -> None:
    source = text(11, "", [1, 0, 0, 2], value=value, dtype="double")
    check_down(source, 10, 9, 8, variants=("plain", "symbolic"))
