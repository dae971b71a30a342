"""Pad below 19, 18 and 11: mode wrap, axes, pads and values at run time, and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.lowering import check_down, lower

KINDS: dict[str, Any] = {
    "float": np.float32, "double": np.float64, "int32": np.int32, "int64": np.int64, "uint8": np.uint8,
    "float16": np.float16,
}  # fmt: skip


def text(
    opset: int, attributes: str, pads: list[int], *, value: str = "", axes: list[int] | None = None, dtype: str = "float",
    shape: str = "4, 5",
) -> str:  # fmt: skip
    constants = [f"int64[{len(pads)}] p = {{{', '.join(map(str, pads))}}}"]
    constants += [f"{dtype} v = {{{value}}}"] if value else []
    constants += [f"int64[{len(axes)}] a = {{{', '.join(map(str, axes))}}}"] if axes is not None else []
    inputs = ["x", "p", "v" if value else "", "a" if axes is not None else ""]
    while not inputs[-1]:
        inputs.pop()
    return f"""<ir_version: 6, opset_import: ["": {opset}]> graph ({dtype}[{shape}] x) => ({dtype}[] y)
        <{", ".join(constants)}> {{ y = Pad {attributes} ({", ".join(inputs)}) }}"""


def feeds(dtype: str = "float") -> dict[str, np.ndarray]:
    return {"x": np.arange(20).reshape(4, 5).astype(KINDS[dtype])}


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


@pytest.mark.parametrize("value", ["0.1", "1e300"])
def test_a_double_that_float32_does_not_hold(value: str) -> None:
    source = text(11, "", [1, 0, 0, 2], value=value, dtype="double")
    check_down(source, 10, 9, 8, variants=("plain", "symbolic"))


@pytest.mark.parametrize("mode", ["constant", "edge"])
def test_an_empty_tensor(mode: str) -> None:
    pads = [1, 0, 0, 2] if mode == "constant" else [0, 1, 0, 2]
    source = text(11, f'<mode = "{mode}">', pads, shape="0, 2")
    check_down(source, 10, feeds={"x": np.zeros((0, 2), np.float32)}, variants=("plain", "symbolic"))
