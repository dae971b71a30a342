"""Operators that move elements, written out, move the same elements."""

from __future__ import annotations

import numpy as np
import pytest

from tests.written_out import at, check_written_out


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_flatten(axis: int) -> None:
    needs = {0: (), 1: (), 2: ("symbolic", "unranked"), 3: ("unranked",)}[axis]
    check_written_out(
        at(13, f"g (float[2,3,4] x) => (float[a,b] y) {{ y = Flatten <axis = {axis}> (x) }}"),
        "Flatten",
        refused=dict.fromkeys(needs, "needs-shape"),
    )


@pytest.mark.parametrize("opset", [11, 13])
def test_squeeze_and_unsqueeze(opset: int) -> None:
    for operator, dims, result in (("Unsqueeze", "2,3", "2,1,3"), ("Squeeze", "2,1,3", "2,3")):
        given = "<axes = [1]> (x)" if opset < 13 else "(x, a)"
        weights = "" if opset < 13 else "<int64[1] a = {1}>"
        check_written_out(
            at(opset, f"g (float[{dims}] x) => (float[{result}] y) {weights} {{ y = {operator} {given} }}"),
            operator,
            refused={"unranked": "needs-shape"},
        )


def test_an_open_axis_stays_in_its_place_only_before_the_new_one() -> None:
    text = at(13, "g (float[N,M] x) => (float y) <int64[1] a = {%d}> { y = Unsqueeze (x, a) }")
    x = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    for axis, refused in ((1, {}), (2, {}), (0, {"plain": "needs-shape"})):
        from tests.harness import model

        proto = model(text % axis)
        proto.graph.output[0].type.tensor_type.ClearField("shape")
        check_written_out(proto, "Unsqueeze", feeds=x, variants=["plain"], refused=refused)


def test_size() -> None:
    text = at(13, "g (float[2,3] x) => (int64 y) { y = Size (x) }")
    check_written_out(text, "Size", variants=["plain", "symbolic", "function"])


def test_shape_of_fixed_lengths() -> None:
    call = "g (float[2,3] x) => (int64[2] y) { y = Shape (x) }"
    check_written_out(at(13, call), "Shape", refused={"symbolic": "needs-shape", "unranked": "needs-shape"})
    part = "g (float[2,3] x) => (int64[1] y) { y = Shape <start = 1> (x) }"
    check_written_out(at(15, part), "Shape", variants=["plain", "if"])


def test_dropout_of_inference() -> None:
    check_written_out(
        at(13, "g (float[2,3] x) => (float[2,3] y) { y, m = Dropout (x) }"),
        "Dropout",
    )
    check_written_out(
        at(13, "g (float[2,3] x) => (float[2,3] y, bool[2,3] m) { y, m = Dropout (x) }"),
        "Dropout",
        variants=["plain"],
        refused={"plain": "no-equal"},
    )


@pytest.mark.parametrize("attributes", ["", "<transB = 1>", "<alpha = 0.5, beta = 2.0, transA = 1>"])
@pytest.mark.parametrize("bias", [True, False])
def test_gemm(attributes: str, bias: bool) -> None:
    first = "4,2" if "transA" in attributes else "2,4"
    second = "3,4" if "transB" in attributes else "4,3"
    check_written_out(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[{first}] a, float[{second}] b, float[3] c) => (float[2,3] y)
        {{ y = Gemm {attributes} ({"a, b, c" if bias else "a, b"}) }}""",
        "Gemm",
        rtol=1e-5,
        atol=1e-5,
    )


@pytest.mark.parametrize("opset", [7, 11, 13, 18])
def test_split(opset: int) -> None:
    lengths = opset < 13
    given = "<axis = 1, split = [1, 3]> (x)" if lengths else "<axis = 1> (x, l)"
    weights = "" if lengths else "<int64[2] l = {1, 3}>"
    check_written_out(
        at(opset, f"g (float[2,4] x) => (float[2,1] y, float[2,3] z) {weights} {{ y, z = Split {given} }}"),
        "Split",
    )


def test_split_into_equal_parts() -> None:
    check_written_out(
        at(
            18,
            "g (float[2,5] x) => (float[2,3] y, float[2,2] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }",
        ),
        "Split",
        refused={"symbolic": "needs-shape", "unranked": "needs-shape"},
    )


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
    check_written_out(
        at(opset, f"g (float[2,8,4,6] x) => (float[{result}] y) {{ y = {call} }}"),
        call.partition(" ")[0],
        refused={"symbolic": "needs-shape", "unranked": "needs-shape"},
    )


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("indices", ["0", "-1", "2"])
def test_gather_of_one_index(indices: str, opset: int) -> None:
    call = f"g (float[2,4] x) => (float[2] y) <int64 i = {{{indices}}}> {{ y = Gather <axis = 1> (x, i) }}"
    check_written_out(at(opset, call), "Gather")


@pytest.mark.parametrize("indices", ["0, 1, 2", "2, 3, 0", "-2, -1, 0", "1, 1"])
def test_gather_of_a_few_indices(indices: str) -> None:
    count = len(indices.split(","))
    call = f"g (float[2,4] x) => (float[2,{count}] y) <int64[{count}] i = {{{indices}}}> {{ y = Gather <axis = 1> (x, i) }}"
    check_written_out(at(13, call), "Gather")


def test_gather_by_computed_indices_is_refused() -> None:
    call = "g (float[2,4] x, int64[2] i) => (float[2,2] y) { y = Gather <axis = 1> (x, i) }"
    feeds = {"x": np.ones((2, 4), np.float32), "i": np.array([0, 1])}
    check_written_out(
        at(13, call), "Gather", variants=["plain"], feeds=feeds, refused={"plain": "needs-constant"}
    )
