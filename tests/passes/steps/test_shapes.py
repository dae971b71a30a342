"""Operators that move elements, written out; Shape, DepthToSpace and ReverseSequence down; Tile up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.steps import check, check_down, check_written_out, lift, lower, operators, refuses, write_out


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_flatten(axis: int) -> None:
    needs = {0: (), 1: (), 2: ("symbolic", "unranked"), 3: ("unranked",)}[axis]
    source = f"13 (float[2,3,4] x) => (float[a,b] y) {{ y = Flatten <axis = {axis}> (x) }}"
    check_written_out(source, "Flatten", refused=dict.fromkeys(needs, "needs-shape"))


@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze_and_unsqueeze(opset: int) -> None:
    for operator, dims, result in (("Unsqueeze", "2,3", "2,1,3"), ("Squeeze", "2,1,3", "2,3")):
        given = "<axes = [1]> (x)" if opset < 13 else "(x, a)"
        weights = "" if opset < 13 else "<int64[1] a = {1}>"
        source = f"{opset} (float[{dims}] x) => (float[{result}] y) {weights} {{ y = {operator} {given} }}"
        check_written_out(source, operator, refused={"unranked": "needs-shape"})


def test_an_open_axis_stays_in_its_place_only_before_the_new_one() -> None:
    text = "13 (float[N,M] x) => (float y) <int64[1] a = {%d}> { y = Unsqueeze (x, a) }"
    x = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    for axis, refused in ((1, {}), (2, {}), (0, {"plain": "needs-shape"})):
        from tests.harness import model

        proto = model(text % axis)
        proto.graph.output[0].type.tensor_type.ClearField("shape")
        check_written_out(proto, "Unsqueeze", feeds=x, variants=["plain"], refused=refused)


def test_size() -> None:
    text = "13 (float[2,3] x) => (int64 y) { y = Size (x) }"
    check_written_out(text, "Size", variants=["plain", "symbolic", "function"])


def test_shape_of_fixed_lengths() -> None:
    call = "(float[2,3] x) => (int64[2] y) { y = Shape (x) }"
    check_written_out(f"13 {call}", "Shape", refused={"symbolic": "needs-shape", "unranked": "needs-shape"})
    part = "(float[2,3] x) => (int64[1] y) { y = Shape <start = 1> (x) }"
    check_written_out(f"15 {part}", "Shape", variants=["plain", "if"])


def test_dropout_of_inference() -> None:
    check_written_out("13 (float[2,3] x) => (float[2,3] y) { y, m = Dropout (x) }", "Dropout")
    source = "13 (float[2,3] x) => (float[2,3] y, bool[2,3] m) { y, m = Dropout (x) }"
    check_written_out(source, "Dropout", variants=["plain"], refused={"plain": "no-equal"})


@pytest.mark.parametrize("attributes", ["", "<transB = 1>", "<alpha = 0.5, beta = 2.0, transA = 1>"])
@pytest.mark.parametrize("bias", [True, False])
def test_gemm(attributes: str, bias: bool) -> None:
    first = "4,2" if "transA" in attributes else "2,4"
    second = "3,4" if "transB" in attributes else "4,3"
    source = f"""13 (float[{first}] a, float[{second}] b, float[3] c) => (float[2,3] y)
        {{ y = Gemm {attributes} ({"a, b, c" if bias else "a, b"}) }}"""
    check_written_out(source, "Gemm", rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("opset", [7, 11, 13, 18])
def test_split(opset: int) -> None:
    lengths = opset < 13
    given = "<axis = 1, split = [1, 3]> (x)" if lengths else "<axis = 1> (x, l)"
    weights = "" if lengths else "<int64[2] l = {1, 3}>"
    check_written_out(
        f"{opset} (float[2,4] x) => (float[2,1] y, float[2,3] z) {weights} {{ y, z = Split {given} }}",
        "Split",
    )


def test_split_into_equal_parts() -> None:
    source = (
        "18 (float[2,5] x) => (float[2,3] y, float[2,2] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }"
    )
    check_written_out(source, "Split", refused={"symbolic": "needs-shape", "unranked": "needs-shape"})


@pytest.mark.parametrize(
    ("call", "result", "opset"),
    [
        ("SpaceToDepth <blocksize = 2> (x)", "2,32,2,3", 13),
        ('SpaceToDepth <blocksize = 2, mode = "CRD"> (x)', "2,32,2,3", 28),
        ("DepthToSpace <blocksize = 2> (x)", "2,2,8,12", 13),
        ('DepthToSpace <blocksize = 2, mode = "CRD"> (x)', "2,2,8,12", 13),
    ],
)
def test_depth_and_space(call: str, result: str, opset: int) -> None:
    source = f"{opset} (float[2,8,4,6] x) => (float[{result}] y) {{ y = {call} }}"
    check_written_out(
        source, call.partition(" ")[0], refused={"symbolic": "needs-shape", "unranked": "needs-shape"}
    )


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("indices", ["0", "-1", "2"])
def test_gather_of_one_index(indices: str, opset: int) -> None:
    call = f"(float[2,4] x) => (float[2] y) <int64 i = {{{indices}}}> {{ y = Gather <axis = 1> (x, i) }}"
    check_written_out(f"{opset} {call}", "Gather")


@pytest.mark.parametrize("indices", ["0, 1, 2", "2, 3, 0", "-2, -1, 0", "1, 1"])
def test_gather_of_a_few_indices(indices: str) -> None:
    count = len(indices.split(","))
    call = f"(float[2,4] x) => (float[2,{count}] y) <int64[{count}] i = {{{indices}}}> {{ y = Gather <axis = 1> (x, i) }}"
    check_written_out(f"13 {call}", "Gather")


def test_gather_by_computed_indices_is_refused() -> None:
    call = "(float[2,4] x, int64[2] i) => (float[2,2] y) { y = Gather <axis = 1> (x, i) }"
    feeds = {"x": np.ones((2, 4), np.float32), "i": np.array([0, 1])}
    check_written_out(
        f"13 {call}", "Gather", variants=["plain"], feeds=feeds, refused={"plain": "needs-constant"}
    )


@pytest.mark.parametrize("start", [None, 0, 1, -2, -9, 9])
@pytest.mark.parametrize("end", [None, 0, 2, -1, -9, 9])
def test_bounds(start: int | None, end: int | None) -> None:
    given = [f"{name} = {value}" for name, value in (("start", start), ("end", end)) if value is not None]
    attributes = f"<{', '.join(given)}>" if given else ""
    source = f"15 (float[2, 3, 4] x) => (int64[] y) {{ y = Shape {attributes} (x) }}"
    check_down(source, 14, specials=False)
    check_down(source, 10, 9, 7, variants=("plain", "symbolic", "if"), specials=False)


def test_all_lengths_need_no_slice() -> None:
    source = "15 (float[2, N] x) => (int64[] y) { y = Shape <start = 0> (x) }"
    assert operators(lower(source, 14)[0]) == ["Shape"]


@pytest.mark.parametrize("mode", ["", ', mode = "DCR"', ', mode = "CRD"'])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_depth_to_space(mode: str, dtype: str) -> None:
    source = f"11 ({dtype}[2, 12, 3, 4] x) => ({dtype}[a, b, c, d] y) {{ y = DepthToSpace <blocksize = 2{mode}> (x) }}"
    check_down(source, 10, 7, variants=("plain", "symbolic", "unranked", "if"))
    check_down(source, 10, 9, variants=("function",))


@pytest.mark.parametrize("mode", ["", ', mode = "DCR"', ', mode = "CRD"'])
def test_space_to_depth(mode: str) -> None:
    source = (
        f"28 (float[2, 3, 4, 6] x) => (float[a, b, c, d] y) {{ y = SpaceToDepth <blocksize = 2{mode}> (x) }}"
    )
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 6)).astype(np.float32)
    blocks = x.reshape(2, 3, 2, 2, 3, 2)
    perm = (0, 1, 3, 5, 2, 4) if "CRD" in mode else (0, 3, 5, 1, 2, 4)
    expected = blocks.transpose(perm).reshape(2, 12, 2, 3)
    check_down(source, 27, 13, 9, feeds={"x": x}, expected=[expected])


def text(shape: list[int], batch: int | None, dtype: str = "float") -> str:
    attributes = "" if batch is None else f"<batch_axis = {batch}, time_axis = {1 - batch}>"
    count = shape[1 if batch is None else batch]
    return f"10 ({dtype}{shape} x, int64[{count}] n) => ({dtype}{shape} y) {{ y = ReverseSequence {attributes} (x, n) }}"


@pytest.mark.parametrize("shape", [[4, 3], [4, 3, 2], [4, 3, 2, 2]])
@pytest.mark.parametrize("batch", [None, 0, 1])
def test_layouts(shape: list[int], batch: int | None) -> None:
    values = np.arange(np.prod(shape)).astype(np.float32)
    values[:2] = np.nan, -0.0
    for shift in range(3):
        count, steps = (shape[0], shape[1]) if batch == 0 else (shape[1], shape[0])
        lengths = np.roll(np.arange(count) % steps + 1, shift)
        feeds = {"x": values.reshape(shape), "n": lengths}
        check_down(text(shape, batch), 9, 8, 7, feeds=feeds, refused={"unranked": "needs-rank"})


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, np.float64, np.bool_, object])
def test_types(dtype: Any) -> None:
    name = {"float64": "double", "object": "string"}.get(np.dtype(dtype).name, np.dtype(dtype).name)
    values = (
        np.array([["a", "b"], ["c", "d"], ["e", ""]], object)
        if dtype is object
        else np.arange(6).reshape(3, 2)
    )
    feeds = {"x": values.astype(dtype), "n": np.array([3, 2])}
    check_down(text([3, 2], 1, name), 9, feeds=feeds, variants=("plain", "symbolic"))


X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dims", ["", "[1]"])
def test_constants(axis: int, dims: str) -> None:
    source = f"""1 (float[2,3] x) => (float[A,B] y)
        {{ n = Constant <value = float{dims} {{3}}> () a = Constant <value = float{dims} {{{axis}}}> ()
        y = Tile (x, n, a) }}"""
    expected = [np.tile(X, (3, 1) if axis == 0 else (1, 3))]
    variants = ["plain", "symbolic", "if", "function"]
    check(source, to=7, feeds={"x": X}, expected=expected, variants=variants)
    check(source, to=9, feeds={"x": X}, expected=expected, variants=["unranked"])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dims", ["", "[1]"])
def test_at_run_time(axis: int, dims: str) -> None:
    source = f"1 (float[2,3] x, float{dims} n, float{dims} a) => (float[A,B] y) {{ y = Tile (x, n, a) }}"
    shape = (1,) if dims else ()
    feeds = {"x": X, "n": np.full(shape, 2, np.float32), "a": np.full(shape, axis, np.float32)}
    check(source, to=9, feeds=feeds, expected=[np.tile(X, (2, 1) if axis == 0 else (1, 2))])
    refuses("needs-rank", lift, source, 8)


@pytest.mark.parametrize(("opset", "inputs"), [(7, 1), (13, 3)])
def test_limits_are_attributes_or_inputs(opset: int, inputs: int) -> None:
    result = check_written_out(
        f"{opset} (float[2] x) => (float[2] y) {{ y = HardSigmoid (x) }}", "HardSigmoid", atol=1e-7
    )
    assert [len(node.input) for node in result.graph.node if node.op_type == "Clip"] == [inputs]


def test_computed_axes_stay_computed_where_the_form_has_them() -> None:
    text = '<ir_version: 8, opset_import: ["": %d]> g (float[2,3] x, int64[1] a) => (float[p,q] y) { y = %s (x, a) }'
    result, _, refused = write_out(text % (18, "ReduceL2"), {"ReduceL2"})
    assert not refused
    assert ["a" in node.input for node in result.graph.node if node.op_type == "ReduceSum"] == [True]
    _, _, (error,) = write_out(text % (18, "ReduceLogSumExp"), {"ReduceLogSumExp"})
    assert error.code == "needs-constant"


def test_a_reduction_that_may_do_nothing_is_refused() -> None:
    text = "18 (float[2,3] x) => (float[2,3] y) { y = ReduceL1 <noop_with_empty_axes = 1> (x) }"
    _, _, (error,) = write_out(text, {"ReduceL1"})
    assert error.code == "no-equal"
    assert "noop_with_empty_axes" in str(error)
