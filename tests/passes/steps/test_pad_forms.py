"""Pads written out below 19 and 11: mode wrap as Gathers, pads at run time as Gathers and joined blocks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down
from tests.passes.steps.pads import KINDS, feeds, text

WRAP = '<mode = "wrap">'


@pytest.mark.parametrize(
    "pads", [[0, 2, 0, 1], [1, 0, 0, 0], [9, 7, 5, 12], [-1, 0, 2, -2], [0, 0, 0, 0]], ids=str
)
def test_wrap(pads: list[int]) -> None:
    check_down(text(19, WRAP, pads), 18)
    check_down(text(19, WRAP, pads), 13, 11, 9, 7, variants=("plain",))
    check_down(text(19, WRAP, pads), 11, 10, variants=("symbolic",))


@pytest.mark.parametrize("axes", [[1], [-1], [-2, 1]], ids=str)
def test_wrap_of_some_axes(axes: list[int]) -> None:
    check_down(text(19, WRAP, [1, 2] * len(axes), axes=axes), 18)


@pytest.mark.parametrize("dtype", ["double", "int32", "int64", "uint8"])
def test_wrap_of_other_types(dtype: str) -> None:
    check_down(text(19, WRAP, [1, 2, 3, 4], dtype=dtype), 18, 11, variants=("plain", "symbolic"))


def test_wrap_by_pads_at_run_time() -> None:
    source = """<ir_version: 9, opset_import: ["": 19]> graph (float[4, 5] x, int64[4] p) => (float[] y)
        { y = Pad <mode = "wrap"> (x, p) }"""
    for pads in ([0, 2, 0, 1], [-1, 7, 3, -2]):
        values = feeds() | {"p": np.array(pads)}
        check_down(source, 18, feeds=values, refused={"unranked": "needs-rank"})
        check_down(source, 11, feeds=values, variants=("plain", "symbolic"))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
@pytest.mark.parametrize("pads", [[1, 2, 0, 3], [-1, 2, 1, -2], [0, 0, 0, 0]], ids=str)
@pytest.mark.parametrize("dtype", ["float", "int64"])
def test_pads_at_run_time(mode: str, pads: list[int], dtype: str) -> None:
    value = ", v" if mode == "constant" else ""
    declared = f", {dtype} v" if value else ""
    source = f"""<ir_version: 6, opset_import: ["": 11]>
        graph ({dtype}[4, 5] x, int64[4] p{declared}) => ({dtype}[] y) {{ y = Pad <mode = "{mode}"> (x, p{value}) }}"""
    values = feeds(dtype) | {"p": np.array(pads)} | ({"v": np.array(7, KINDS[dtype])} if value else {})
    check_down(source, 10, feeds=values, refused={"unranked": "needs-rank"})


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_an_empty_tensor(mode: str) -> None:
    pads = [1, 0, 0, 2] if mode == "constant" else [0, 1, 0, 2]
    source = text(11, f'<mode = "{mode}">', pads, shape="0, 2")
    check_down(source, 10, feeds={"x": np.zeros((0, 2), np.float32)}, variants=("plain", "symbolic"))
