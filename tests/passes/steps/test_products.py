"""Einsum below 12, Gemm below 11, and Det."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.steps import check_down, lower, refuses

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 2, "i": 3, "j": 4, "k": 5, "A": 2}
ATOL = 2e-5


def source(equation: str, *shapes: list[int], dtype: int = TensorProto.FLOAT) -> helper.ModelProto:  # type: ignore[name-defined]
    left = equation.replace(" ", "").split("->")[0].split(",")
    given = list(shapes) or [[SIZES[letter] for letter in term] for term in left]
    names = [f"x{number}" for number in range(len(given))]
    graph = helper.make_graph(
        [helper.make_node("Einsum", names, ["y"], equation=equation)],
        "g",
        [helper.make_tensor_value_info(name, dtype, shape) for name, shape in zip(names, given, strict=True)],
        [helper.make_tensor_value_info("y", dtype, None)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=7)


@pytest.mark.parametrize(
    "equation",
    [
        "ij,jk->ik", "ij,kj->ik", "ij,jk", "bij,bjk->bik", "bij,bkj->bik", "bij,jk->bik", "abij,abkj->abik",
        "abij,abjk->abik", "bica,bcja->bij", "i,j->ij", "i,i->", "i,i->i", "ij,j->i", "i,ij->j", "ij->ji", "ij->", "ij->j",
        "ij->i", "ij", "ji", "abc,cd->abd", "abcd,cd->ab", "abcd,ab->cd", "abcd,dc->ab", "ab,cd->abcd", "ab,cd->dbca",
        "ab,ab->ab", "ab,ba->ab", "bi,ba->ia", "ab,bc,cd->ad", "a,ab,b->", "a,b,c->abc", "ai,bi,ci->abc", "ab , bc -> ac",
        "aA,Ab->ab", "ab,ab", "ab,cde->", "ab,bc->b",
    ],
)  # fmt: skip
def test_letters(equation: str) -> None:
    check_down(source(equation), 11, 10, specials=False, atol=ATOL, rtol=1e-5)
    check_down(source(equation), 9, 7, specials=False, atol=ATOL, rtol=1e-5, variants=("plain",))


@pytest.mark.parametrize(
    ("equation", "shape"),
    [("ii->i", [3, 3]), ("ii->", [3, 3]), ("ii", [3, 3]), ("bii->bi", [2, 3, 3]), ("iib->ib", [3, 3, 2]),
     ("iji->j", [3, 4, 3]), ("iii->i", [3, 3, 3])],
)  # fmt: skip
def test_diagonals(equation: str, shape: list[int]) -> None:
    check_down(source(equation, shape), 11, 10, specials=False, atol=ATOL)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("...ij,...jk->...ik", ([2, 3, 4], [2, 4, 5])),
        ("...ij,...jk->...ik", ([2, 1, 3, 4], [2, 6, 4, 5])),
        ("...ij,jk->...ik", ([2, 6, 3, 4], [4, 5])),
        ("...ij,...jk", ([2, 3, 4], [2, 4, 5])),
        ("i...->...", ([3, 2, 4],)),
        ("...i->i...", ([3, 2, 4],)),
        ("...,...->...", ([3, 2], [3, 2])),
        ("a...,a...->...", ([3, 2, 4], [3, 2, 4])),
    ],
)
def test_ellipses(equation: str, shapes: tuple[list[int], ...]) -> None:
    check_down(
        source(equation, *shapes),
        11,
        10,
        specials=False,
        atol=ATOL,
        rtol=1e-5,
        refused={"unranked": "needs-rank"},
    )


def test_an_axis_of_one_element_that_is_broadcast() -> None:
    check_down(source("ij,jk->ik", [3, 1], [4, 5]), 11, specials=False, atol=ATOL, variants=("plain",))


@pytest.mark.parametrize("dtype", [TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64])
@pytest.mark.parametrize("equation", ["bij,bjk->bik", "ab,cd->dbca", "abcd,cd->ab"])
def test_types(dtype: int, equation: str) -> None:
    exact = dtype != TensorProto.DOUBLE
    check_down(
        source(equation, dtype=dtype), 11, 9, specials=exact, atol=0 if exact else 1e-12, variants=("plain",)
    )


def test_narrow_integers() -> None:
    """ONNX Runtime has no kernel of these types."""
    rng = np.random.default_rng(1)
    for code, dtype in ((TensorProto.INT8, np.int8), (TensorProto.UINT16, np.uint16)):
        top = np.iinfo(dtype).max
        feeds = {
            name: rng.integers(0, top, shape).astype(dtype)
            for name, shape in (("x0", (3, 4)), ("x1", (4, 5)))
        }
        wrapped = (feeds["x0"].astype(np.int64) @ feeds["x1"].astype(np.int64)).astype(dtype)
        check_down(
            source("ij,jk->ik", dtype=code),
            11,
            9,
            feeds=feeds,
            expected=[wrapped],
            variants=("plain", "symbolic", "if"),
        )


def test_products_of_special_values() -> None:
    """Equal as numbers: ONNX Runtime's kernel adds a zero to each product, so that a negative zero becomes positive."""
    check_down(source("ab,cd->dbca"), 11, 10, 7, rtol=1e-30)


def test_no_elements() -> None:
    check_down(source("ij,jk->ik", [0, 4], [4, 5]), 11, specials=False)
    check_down(source("ij,jk->ik", [3, 0], [0, 5]), 11, specials=False)


@pytest.mark.parametrize("attributes", ["", "<alpha = 0.5>", "<transA = 1, beta = 3.0>"])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_two_inputs(attributes: str, dtype: str) -> None:
    shape = "3, 2" if "transA" in attributes else "2, 3"
    source = f"11 ({dtype}[{shape}] a, {dtype}[3, 4] b) => ({dtype}[] y) {{ y = Gemm {attributes} (a, b) }}"
    check_down(source, 10, 9, 7)


def test_three_inputs() -> None:
    source = """11 (float[2, 3] a, float[3, 4] b, float[4] c) => (float[] y)
        { y = Gemm <beta = 0.5> (a, b, c) }"""
    check_down(source, 10, 7)


def det(shape: str) -> str:
    dims = ", ".join("abc"[: shape.count(",") - 1])
    return f"11 (float[{shape}] x) => (float[{dims}] y) {{ y = Det (x) }}"


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("batch", ["", "3, ", "2, 3, "])
def test_sizes(batch: str, size: int) -> None:
    refused = {"unranked": "needs-rank", "symbolic": "needs-shape"}
    check_down(det(f"{batch}{size}, {size}"), 10, 9, 7, refused=refused, specials=False, rtol=1e-5, atol=1e-4)


def test_specials_of_one_row() -> None:
    x = {"x": np.array([[[np.nan]], [[-0.0]], [[np.inf]]], np.float32)}
    check_down(det("3, 1, 1"), 10, feeds=x, variants=("plain",))


def test_larger_ones_are_refused() -> None:
    refuses("no-equal", lower, det("5, 5"), 10, match="These have 5")
