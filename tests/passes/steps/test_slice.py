"""Slice below opsets 11 and 10, and Gather below 11."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down, lower


def text(
    starts: list[int],
    ends: list[int],
    axes: list[int] | None,
    steps: list[int] | None = None,
    opset: int = 11,
) -> str:
    lists = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    given = {name: values for name, values in lists.items() if values is not None}
    constants = ", ".join(
        f"int64[{len(values)}] {name} = {{{', '.join(map(str, values))}}}" for name, values in given.items()
    )
    names = ", ".join(name if name in given else "" for name in list(lists)[: 4 if steps else len(given)])
    return f"""<ir_version: 6, opset_import: ["": {opset}]> graph (float[4, 5, 6] x) => (float[] y) <{constants}>
        {{ y = Slice (x, {names}) }}"""


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1], [3], [-1], None),
        ([1, 0], [-1, 99], [-2, 0], None),
        ([-1, 4], [-99, 0], [-1, -2], [-1, -2]),
        ([0, 1, 2], [4, 5, 6], None, None),
    ],
)
def test_negative_axes(
    starts: list[int], ends: list[int], axes: list[int] | None, steps: list[int] | None
) -> None:
    check_down(text(starts, ends, axes, steps), 10)
    result, log = lower(text(starts, ends, axes, steps), 10)
    assert not log.changes or log.changes[0].exactness.value == "exact"
    assert all(
        (np.frombuffer(t.raw_data, np.int64) >= 0).all()
        for t in result.graph.initializer
        if t.name == result.graph.node[0].input[3:4]
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [[0, 2], [-1, 1], [-2, -3]], ids=str)
def test_gather(axis: int, indices: list[int]) -> None:
    given = ", ".join(map(str, indices))
    source = f"""<ir_version: 6, opset_import: ["": 11]> graph (float[4, 5, 6] x) => (float[] y)
        <int64[2] i = {{{given}}}> {{ y = Gather <axis = {axis}> (x, i) }}"""
    check_down(source, 10, 7)
    assert {change.exactness.value for change in lower(source, 10)[1].changes} <= {"exact"}


def test_gather_at_run_time_is_assumed() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]> graph (float[4, 5] x, int32[2] i) => (float[] y)
        { y = Gather (x, i) }"""
    check_down(source, 10, 7, feeds={"x": np.eye(4, 5, dtype=np.float32), "i": np.array([-1, 3], np.int32)})
    assert [change.exactness.value for change in lower(source, 10)[1].changes] == ["assumed"]


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ([1, 0], [-1, 99], [1, 0], None),
        ([-2], [9223372036854775807], [2], None),
        ([-99], [-1], [2], [1]),
        ([0], [99], [2], [2]),
        ([-1], [-99], [1], [-1]),
        ([99, 4, 0], [0, -99, 5], [2, 1, 0], [-2, -3, 1]),
        ([-99], [-999], [0], [-1]),
        ([3], [1], [0], [1]),
    ],
)
def test_constant_bounds(
    starts: list[int], ends: list[int], axes: list[int], steps: list[int] | None
) -> None:
    source = text(starts, ends, axes, steps, opset=10)
    check_down(source, 9, variants=("plain", "symbolic", "unranked", "if", "function"))
    check_down(source, 8, 7, variants=("plain",) if steps else ("plain", "symbolic"))


@pytest.mark.parametrize(
    ("start", "end"), [(0, 3), (-2, 99), (1, -1), (-99, 2), (3, 1), (99, -99), (-1, -99)]
)
@pytest.mark.parametrize("step", [1, 2, -1, -3])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_bounds_at_run_time(start: int, end: int, step: int, dtype: str) -> None:
    source = f"""<ir_version: 6, opset_import: ["": 10]>
        graph (float[2, 5] x, {dtype}[2] s, {dtype}[2] e) => (float[] y)
        <{dtype}[2] axes = {{1, 0}}, {dtype}[2] steps = {{{step}, 1}}> {{ y = Slice (x, s, e, axes, steps) }}"""
    kind = np.int32 if dtype == "int32" else np.int64
    feeds = {"x": np.arange(10, dtype=np.float32).reshape(2, 5), "s": np.array([start, 0], kind)}
    check_down(source, 9, feeds=feeds | {"e": np.array([end, 2], kind)})


def test_axes_at_run_time_are_refused() -> None:
    source = """<ir_version: 6, opset_import: ["": 10]> graph (float[2, 5] x, int64[1] axes) => (float[] y)
        <int64[1] s = {0}, int64[1] e = {1}> { y = Slice (x, s, e, axes) }"""
    feeds = {"x": np.zeros((2, 5), np.float32), "axes": np.array([1])}
    codes = dict.fromkeys(("plain", "symbolic", "unranked", "if", "function"), "needs-constant")
    check_down(source, 9, feeds=feeds, refused=codes)
