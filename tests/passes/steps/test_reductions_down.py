"""The ten Reduce operators below 18 (ReduceSum: 13), ArgMax and ArgMin below 12."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down, lower

TEN = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")


def text(
    name: str, axes: list[int] | None, attributes: str = "", dtype: str = "float", opset: int = 18
) -> str:
    given = "" if axes is None else f"<int64[{len(axes)}] axes = {{{', '.join(map(str, axes))}}}>"
    return f"""<ir_version: 8, opset_import: ["": {opset}]>
        graph ({dtype}[2, 3, 4] x) => ({dtype}[] y) {given}
        {{ y = Reduce{name} {attributes and f"<{attributes}>"} (x{"" if axes is None else ", axes"}) }}"""


def opsets(name: str) -> tuple[int, int]:
    return (13, 12) if name == "Sum" else (18, 17)


@pytest.mark.parametrize("name", TEN)
@pytest.mark.parametrize("axes", [None, [], [1], [-1], [0, 2], [-3, -2, -1]], ids=str)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_axes(name: str, axes: list[int] | None, keepdims: int) -> None:
    opset, below = opsets(name)
    check_down(text(name, axes, f"keepdims = {keepdims}, noop_with_empty_axes = 0", opset=opset), below)
    check_down(
        text(name, axes, f"keepdims = {keepdims}", opset=opset),
        12,
        9,
        7,
        variants=("plain", "symbolic", "if"),
    )


@pytest.mark.parametrize("name", TEN)
@pytest.mark.parametrize("axes", [None, []], ids=str)
def test_nothing_is_reduced(name: str, axes: list[int] | None) -> None:
    opset, below = opsets(name)
    rtol = 1e-6 if name == "LogSum" else 0.0
    check_down(text(name, axes, "noop_with_empty_axes = 1", opset=opset), below, 7, rtol=rtol)
    check_down(text(name, [1], "noop_with_empty_axes = 1", opset=opset), below, 11)


@pytest.mark.parametrize("name", TEN)
@pytest.mark.parametrize("dtype", ["int32", "int64", "double", "float16"])
def test_other_types(name: str, dtype: str) -> None:
    opset, below = opsets(name)
    kind = {"int32": np.int32, "int64": np.int64, "double": np.float64, "float16": np.float16}[dtype]
    feeds = {"x": np.random.default_rng(0).integers(1, 9, (2, 3, 4)).astype(kind)}
    for axes, attributes in (([1], ""), ([], "noop_with_empty_axes = 1")):
        rtol = 1e-6 if attributes and name == "LogSum" else 0.0
        source = text(name, axes, attributes, dtype, opset)
        check_down(source, below, 12, feeds=feeds, variants=("plain", "if"), rtol=rtol)


@pytest.mark.parametrize("name", TEN)
@pytest.mark.parametrize("attributes", ["keepdims = 1", "noop_with_empty_axes = 1"])
def test_an_empty_tensor(name: str, attributes: str) -> None:
    opset, below = opsets(name)
    axes = "" if "noop" in attributes else ", axes"
    source = f"""<ir_version: 8, opset_import: ["": {opset}]>
        graph (float[2, 0, 4] x) => (float[] y) <int64[1] axes = {{2}}> {{ y = Reduce{name} <{attributes}> (x{axes}) }}"""
    check_down(source, below, variants=("plain", "symbolic"))


@pytest.mark.parametrize("name", ["Sum", "Mean"])
def test_axes_at_run_time(name: str) -> None:
    opset, below = opsets(name)
    source = f"""<ir_version: 8, opset_import: ["": {opset}]>
        graph (float[2, 3] x, int64[1] axes) => (float[] y) {{ y = Reduce{name} (x, axes) }}"""
    feeds = {"x": np.ones((2, 3), np.float32), "axes": np.array([1])}
    codes = dict.fromkeys(("plain", "symbolic", "unranked", "if", "function"), "needs-constant")
    check_down(source, below, feeds=feeds, refused=codes)


@pytest.mark.parametrize("operator", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_the_last_index(operator: str, axis: int, keepdims: int) -> None:
    for last in (0, 1):
        source = f"""<ir_version: 7, opset_import: ["": 12]> graph (float[4, 3, 5] x) => (int64[] y)
            {{ y = {operator} <axis = {axis}, keepdims = {keepdims}, select_last_index = {last}> (x) }}"""
        check_down(source, 11, specials=False)
        check_down(source, 10, specials=False, variants=("plain", "symbolic"))
        ties = np.random.default_rng(0).integers(0, 2, (4, 3, 5)).astype(np.float32)
        check_down(source, 11, feeds={"x": ties})


def test_the_last_index_of_a_vector() -> None:
    source = """<ir_version: 7, opset_import: ["": 12]> graph (float[4] x) => (int64[] y)
        { y = ArgMax <keepdims = 0, select_last_index = 1> (x) }"""
    check_down(source, 11, 10, feeds={"x": np.array([1, 2, 2, 0], np.float32)})


def test_the_last_index_of_integers() -> None:
    source = """<ir_version: 7, opset_import: ["": 12]> graph (int32[4, 6] x) => (int64[] y)
        { y = ArgMin <axis = 1, select_last_index = 1> (x) }"""
    check_down(source, 11, feeds={"x": np.random.default_rng(0).integers(0, 2, (4, 6)).astype(np.int32)})


def test_the_default_needs_no_slice() -> None:
    source = """<ir_version: 7, opset_import: ["": 12]> graph (float[4] x) => (int64[] y)
        { y = ArgMax <select_last_index = 0> (x) }"""
    assert [node.op_type for node in lower(source, 11)[0].graph.node] == ["ArgMax"]


def test_axes_that_are_counted_from_the_rank() -> None:
    source = """<ir_version: 8, opset_import: ["": 18]> graph (float[2, 3, 4] x) => (float[] y)
        <int64 start = {1}, int64 step = {1}> {
        s = Shape (x)  rank = Size (s)  axes = Range (start, rank, step)  y = ReduceMean (x, axes) }"""
    check_down(source, 17, 11, variants=("plain", "symbolic", "if", "function"))
