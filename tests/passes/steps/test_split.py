"""Split below 18 and 13: num_outputs, lengths as constants and at run time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down, lower


@pytest.mark.parametrize(("parts", "axis"), [(2, 0), (3, 0), (4, 0), (5, 0), (3, 1), (3, -1), (1, 0)])
def test_num_outputs(parts: int, axis: int) -> None:
    names = [f"y{index}" for index in range(parts)]
    source = f"""<ir_version: 8, opset_import: ["": 18]> graph (float[7, 6] x) => ({", ".join(f"float[] {n}" for n in names)})
        {{ {", ".join(names)} = Split <axis = {axis}, num_outputs = {parts}> (x) }}"""
    if parts == 5:
        source = source.replace("float[7, 6]", "float[9, 6]")
    check_down(source, 17, 13)
    check_down(source, 12, 11, variants=("plain", "symbolic", "if"))
    check_down(source, 10, 9, 7, variants=("plain",))


@pytest.mark.parametrize(("lengths", "axis"), [([1, 5], 1), ([3, 3], -1), ([0, 6], 1), ([2, 1], 0)])
@pytest.mark.parametrize("dtype", ["float", "int64", "bool", "string"])
def test_constant_lengths(lengths: list[int], axis: int, dtype: str) -> None:
    source = f"""<ir_version: 8, opset_import: ["": 13]> graph ({dtype}[3, 6] x) => ({dtype}[] y, {dtype}[] z)
        <int64[2] l = {{{lengths[0]}, {lengths[1]}}}> {{ y, z = Split <axis = {axis}> (x, l) }}"""
    kind = {"float": np.float32, "int64": np.int64, "bool": np.bool_, "string": np.object_}[dtype]
    feeds = {
        "x": np.array([str(i) for i in range(18)] if dtype == "string" else range(18))
        .reshape(3, 6)
        .astype(kind)
    }
    check_down(source, 12, 11, 7, feeds=feeds, variants=("plain", "symbolic", "if"))
    check_down(source, 12, feeds=feeds)


def test_without_lengths() -> None:
    source = """<ir_version: 8, opset_import: ["": 13]> graph (float[3, 6] x) => (float[] y, float[] z)
        { y, z = Split <axis = -1> (x) }"""
    check_down(source, 12, 11)


@pytest.mark.parametrize("lengths", [[1, 2, 3], [0, 6, 0], [6, 0, 0]], ids=str)
@pytest.mark.parametrize("axis", [1, -1])
def test_lengths_at_run_time(lengths: list[int], axis: int) -> None:
    source = f"""<ir_version: 8, opset_import: ["": 13]> graph (float[2, 6] x, int64[3] l) => (float[] a, float[] b, float[] c)
        {{ a, b, c = Split <axis = {axis}> (x, l) }}"""
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(2, 6), "l": np.array(lengths)}
    check_down(source, 12, 11, feeds=feeds)
    check_down(source, 10, feeds=feeds, variants=("plain", "symbolic"))


def test_equal_parts_of_a_known_length_stay_equal_parts() -> None:
    source = """<ir_version: 8, opset_import: ["": 18]> graph (float[N, 6] x) => (float[] y, float[] z)
        { y, z = Split <axis = 1, num_outputs = 2> (x) }"""
    assert [len(node.input) for node in lower(source, 17)[0].graph.node] == [1]


def test_a_branch_that_is_never_taken_and_could_not_be() -> None:
    """5 elements cannot be cut into 4 parts of 2: the branch would fail if it were taken."""
    source = """<ir_version: 8, opset_import: ["": 18]> graph (float[5] x, bool c) => (float[] y) { y = If (c) <
        then_branch = a () => (p) { p = Relu (x) },
        else_branch = b () => (q) { q, r, s, t = Split <num_outputs = 4> (x) }> }"""
    feeds = {"x": np.ones(5, np.float32), "c": np.array(True)}
    check_down(source, 17, 12, 11, feeds=feeds, variants=("plain", "symbolic", "function"))
