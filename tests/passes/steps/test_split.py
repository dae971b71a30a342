"""Split and Concat: lengths as attribute, constant and at run time, num_outputs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import model
from tests.steps import check, check_down, lift, lower, refuses


@pytest.mark.parametrize(("parts", "axis"), [(2, 0), (3, 0), (4, 0), (5, 0), (3, 1), (3, -1), (1, 0)])
def test_num_outputs(parts: int, axis: int) -> None:
    names = [f"y{index}" for index in range(parts)]
    source = f"""18 (float[7, 6] x) => ({", ".join(f"float[] {n}" for n in names)})
        {{ {", ".join(names)} = Split <axis = {axis}, num_outputs = {parts}> (x) }}"""
    if parts == 5:
        source = source.replace("float[7, 6]", "float[9, 6]")
    check_down(source, 17, 13)
    check_down(source, 12, 11, variants=("plain", "symbolic", "if"))
    check_down(source, 10, 9, 7, variants=("plain",))


@pytest.mark.parametrize(("lengths", "axis"), [([1, 5], 1), ([3, 3], -1), ([0, 6], 1), ([2, 1], 0)])
@pytest.mark.parametrize("dtype", ["float", "int64", "bool", "string"])
def test_constant_lengths(lengths: list[int], axis: int, dtype: str) -> None:
    source = f"""13 ({dtype}[3, 6] x) => ({dtype}[] y, {dtype}[] z)
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
    source = "13 (float[3, 6] x) => (float[] y, float[] z) { y, z = Split <axis = -1> (x) }"
    check_down(source, 12, 11)


@pytest.mark.parametrize("lengths", [[1, 2, 3], [0, 6, 0], [6, 0, 0]], ids=str)
@pytest.mark.parametrize("axis", [1, -1])
def test_lengths_at_run_time(lengths: list[int], axis: int) -> None:
    source = f"""13 (float[2, 6] x, int64[3] l) => (float[] a, float[] b, float[] c)
        {{ a, b, c = Split <axis = {axis}> (x, l) }}"""
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(2, 6), "l": np.array(lengths)}
    check_down(source, 12, 11, feeds=feeds)
    check_down(source, 10, feeds=feeds, variants=("plain", "symbolic"))


def test_equal_parts_of_a_known_length_stay_equal_parts() -> None:
    source = "18 (float[N, 6] x) => (float[] y, float[] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }"
    assert [len(node.input) for node in lower(source, 17)[0].graph.node] == [1]


def test_a_branch_that_is_never_taken_and_could_not_be() -> None:
    """5 elements cannot be cut into 4 parts of 2: the branch would fail if it were taken."""
    source = """18 (float[5] x, bool c) => (float[] y) { y = If (c) <
        then_branch = a () => (p) { p = Relu (x) },
        else_branch = b () => (q) { q, r, s, t = Split <num_outputs = 4> (x) }> }"""
    feeds = {"x": np.ones(5, np.float32), "c": np.array(True)}
    check_down(source, 17, 12, 11, feeds=feeds, variants=("plain", "symbolic", "function"))


X = np.arange(24, dtype=np.float32).reshape(6, 4)


@pytest.mark.parametrize(
    ("attributes", "shapes"),
    [
        ("", "float[3,4] p, float[3,4] q"),
        ("<axis = 1>", "float[6,2] p, float[6,2] q"),
        ("<axis = 1, split = [1, 3]>", "float[6,1] p, float[6,3] q"),
        ("<split = [6, 0]>", "float[6,4] p, float[0,4] q"),
    ],
)
def test_split(attributes: str, shapes: str) -> None:
    source = f"7 (float[6,4] x) => ({shapes}) {{ p, q = Split {attributes} (x) }}"
    check(source, to=13, feeds={"x": X})
    result = check(source, to=18, feeds={"x": X})
    said = [attribute.i for attribute in result.graph.node[0].attribute if attribute.name == "num_outputs"]
    assert said == ([] if "split" in attributes else [2])


def test_lengths_at_run_time_of_13() -> None:
    source = "13 (float[6,4] x, int64[2] s) => (float[A,4] p, float[B,4] q) { p, q = Split (x, s) }"
    result = check(source, to=18, feeds={"x": X, "s": np.array([4, 2])})
    assert not result.graph.node[0].attribute


def test_an_input_that_is_omitted_by_an_empty_name() -> None:
    source = model("13 (float[6,4] x) => (float[3,4] p, float[3,4] q) { p, q = Split (x) }")
    source.graph.node[0].input.append("")
    check(source, to=18, feeds={"x": X})


def test_lengths_that_are_an_attribute_of_a_function() -> None:
    source = """12 (float[6,4] x) => (float[A,4] y, float[B,4] z)
        { y, z = local.Parts <lengths = [1, 5]> (x) }
        <opset_import: ["": 12], domain: "local"> Parts <lengths> (a) => (b, c)
        { b, c = Split <split: ints = @lengths> (a) }"""
    check(source, feeds={"x": X}, expected=[X[:1], X[1:]], variants=["plain"])


def test_version_1_with_lengths_as_an_attribute() -> None:
    source = """1 (float[6,4] x) => (float[6,1] p, float[6,3] q)
        { p, q = Split <axis = 1, split = [1, 3]> (x) }"""
    check(source, to=7, feeds={"x": X}, expected=[X[:, :1], X[:, 1:]])


def test_version_1_with_constant_lengths() -> None:
    source = """1 (float[6,4] x) => (float[1,4] p, float[5,4] q)
        { s = Constant <value = float[2] {1, 5}> () p, q = Split <axis = 0> (x, s) }"""
    check(source, to=7, feeds={"x": X}, expected=[X[:1], X[1:]])


def test_version_1_with_lengths_at_run_time() -> None:
    source = """1 (float[6,4] x, float[2] s) => (float[A,4] p, float[B,4] q)
        { p, q = Split <axis = 0> (x, s) }"""
    check(source, to=13, feeds={"x": X, "s": np.array([4, 2], np.float32)}, expected=[X[:4], X[4:]])
    refuses("needs-value", lift, source, 12)


def test_version_1_without_an_axis_is_assumed() -> None:
    source = "1 (float[6,4] x) => (float[3,4] p, float[3,4] q) { p, q = Split (x) }"
    check(source, to=7, feeds={"x": X}, expected=[X[:3], X[3:]])
    _, log = lift(source, 7)
    assert log.changes[0].exactness == "assumed"


@pytest.mark.parametrize(("attributes", "axis"), [("", 1), ("<axis = 0>", 0), ("<axis = 2>", 2)])
def test_concat(attributes: str, axis: int) -> None:
    shape = [2, 2, 2]
    shape[axis] = 4
    source = f"""1 (float[2,2,2] a, float[2,2,2] b)
        => (float[{",".join(map(str, shape))}] y) {{ y = Concat {attributes} (a, b) }}"""
    a = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    check(source, to=7, feeds={"a": a, "b": -a}, expected=[np.concatenate([a, -a], axis)])
