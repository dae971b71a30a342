"""Range, Trilu, EyeLike and Bernoulli down; Range and OneHot up; OneHot down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.harness import dtype_of, reference, run
from tests.steps import check, check_down, element_wise, lower, refuses, special_values

NUMBERS = [
    (0, 5, 1), (3, 9, 3), (10, 4, -2), (2, 2, 1), (5, 1, 1), (1, 5, -1), (0, 10, 3), (0, -10, -3), (-7, 8, 4),
]  # fmt: skip
"""Start, limit and delta."""


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float", "double"])
def test_range_at_run_time(dtype: str) -> None:
    source = f"11 ({dtype} a, {dtype} b, {dtype} d) => ({dtype}[k] y) {{ y = Range (a, b, d) }}"
    for numbers in NUMBERS:
        feeds = {name: np.array(value, dtype_of(dtype)) for name, value in zip("abd", numbers, strict=True)}
        check_down(source, 10, 9, feeds=feeds, variants=("plain",))
    check_down(source, 10, 9, feeds=feeds)


def test_range_of_floats_adds_up_as_the_original() -> None:
    feeds = {name: np.array(value, np.float32) for name, value in (("a", 0.1), ("b", 30), ("c", 0.1))}
    source = "11 (float a, float b, float c) => (float[k] y) { y = Range (a, b, c) }"
    check_down(source, 10, 9, feeds=feeds)


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float", "double"])
def test_range_of_constants(dtype: str) -> None:
    for start, limit, delta in [*NUMBERS, *([(0.1, 3, 0.1)] if dtype in ("float", "double") else [])]:
        source = f"""11 (float[1] x) => ({dtype}[k] y, float[1] z)
            <{dtype} start = {{{start}}}, {dtype} limit = {{{limit}}}, {dtype} delta = {{{delta}}}>
            {{ z = Identity (x) y = Range (start, limit, delta) }}"""
        check_down(source, 10, 9, variants=("plain", "function"))


def test_range_from_a_shape() -> None:
    for shape in ([4], [0]):
        source = f"""11 (float{shape} x) => (int64[k] y) <int64 zero = {{0}}, int64 one = {{1}}>
            {{ size = Shape (x) n = Squeeze <axes = [0]> (size) y = Range (zero, n, one) }}"""
        check_down(source, 10, 9, variants=("plain", "symbolic", "unranked", "if"), specials=False)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_range_of_half_floats(dtype: str) -> None:
    source = f"""27 (float a) => (float[k] y) <float limit = {{5.0}}, float delta = {{0.5}}>
        {{ h = Cast <to = {10 if dtype == "float16" else 16}> (a) l = CastLike (limit, h) d = CastLike (delta, h)
           z = Range %s (h, l, d) y = Cast <to = 1> (z) }}"""
    for attribute in ("", "<stash_type = 1>"):
        check_down(
            source % attribute,
            26,
            13,
            feeds={"a": np.array(1, np.float32)},
            expected=[np.arange(1, 5, 0.5, np.float32)],
        )
    refuses("no-equal", lower, source % "<stash_type = 10>", 26)


KS = [None, 0, 1, -1, 3, -5, 2**63 - 1, 1 - 2**63]


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("shape", [[3, 4], [2, 4, 3], [5, 5], [2, 0, 3], [1, 1]], ids=str)
def test_trilu(upper: int, shape: list[int]) -> None:
    for k in KS:
        declared, argument = ("", "") if k is None else (f"<int64 k = {{{k}}}>", ", k")
        source = f"""14 (float{shape} x) => (float{shape} y) {declared}
            {{ y = Trilu <upper = {upper}> (x{argument}) }}"""
        check_down(source, 13, 10, 9, specials=0 not in shape)


@pytest.mark.parametrize("upper", [0, 1])
def test_trilu_with_k_at_run_time(upper: int) -> None:
    x = np.resize(special_values(np.dtype(np.float32)), (4, 5))
    source = f"14 (float[4,5] x, int64 k) => (float[4,5] y) {{ y = Trilu <upper = {upper}> (x, k) }}"
    check_down(source, 13, 9, feeds=[{"x": x, "k": np.array(k, np.int64)} for k in KS[1:]])


@pytest.mark.parametrize("dtype", ["double", "int64", "bool", "int32", "float16", "uint8", "int16", "uint64"])
@pytest.mark.parametrize(("upper", "function"), [(0, np.tril), (1, np.triu)])
def test_trilu_of_every_type(dtype: str, upper: int, function: Callable[..., Any]) -> None:
    feeds = {"x": np.resize(special_values(dtype_of(dtype)), (4, 3))}
    source, expected = element_wise(14, f"Trilu <upper = {upper}> (x)", feeds), [function(feeds["x"])]
    check_down(source, 13, 9, feeds=feeds, expected=expected, variants=("plain", "symbolic"))


def test_trilu_below_9() -> None:
    check_down("14 (int64[4,3] x) => (int64[4,3] y) { y = Trilu (x) }", 8, 7, variants=("plain",))


@pytest.mark.parametrize("attributes", ["", "<k = 1>", "<k = -2, dtype = 7>", "<dtype = 1>"])
def test_eye_like(attributes: str) -> None:
    kind = "int64" if "7" in attributes else "float"
    source = f"9 (float[3,4] x) => ({kind}[3,4] y) {{ y = EyeLike {attributes} (x) }}"
    check_down(source, 8, 7, variants=("plain", "symbolic", "unranked", "if"))


@pytest.mark.parametrize("attributes", ["", "<dtype = 7, seed = 2.0>"])
def test_bernoulli(attributes: str) -> None:
    kind = "int64" if "7" in attributes else "float"
    source = f"15 (float[2,1000] x) => ({kind}[2,1000] y) {{ y = Bernoulli {attributes} (x) }}"
    x = np.stack([np.zeros(1000), np.full(1000, 0.25)]).astype(np.float32)
    for target in (14, 9, 7):
        lowered, _ = lower(source, target)
        (y,) = run(lowered, {"x": x})
        assert y.dtype == dtype_of(kind)
        assert set(np.unique(y)) == {0, 1}
        assert y[0].max() == 0
        assert abs(y[1].mean() - 0.25) < 0.08


@pytest.mark.parametrize("axis", ["", "<axis = 0>", "<axis = 1>"])
def test_one_hot(axis: str) -> None:
    """The indices include negative ones and ones that are out of range."""
    source = f"""9 (int64[2, 3] i, int64 depth, float[2] values) => (float[a, b, c] y)
        {{ y = OneHot {axis} (i, depth, values) }}"""
    feeds = {
        "i": np.array([[0, 3, 4], [-1, -4, 2]]),
        "depth": np.array(4, np.int64),
        "values": np.array([-1, 5], np.float32),
    }
    check(source, to=11, feeds=feeds)


def test_one_hot_up_to_28() -> None:
    source = """11 (int64[2] i, int64 depth, float[2] values)
            => (float[a, b] y) { y = OneHot (i, depth, values) }"""
    feeds = {"i": np.array([0, -3]), "depth": np.array(4, np.int64), "values": np.array([-1, 5], np.float32)}
    check(source, to=28, newest=28, feeds=feeds)


@pytest.mark.parametrize("dtype", ["float", "double", "int16", "int32", "int64"])
def test_range(dtype: str) -> None:
    source = f"11 ({dtype} a, {dtype} b, {dtype} d) => ({dtype}[n] y) {{ y = Range (a, b, d) }}"
    kind = "float32" if dtype == "float" else dtype
    feeds = {name: np.array(value, kind) for name, value in (("a", 10), ("b", -7), ("d", -3))}
    check(source, to=27, feeds=feeds)


def text(axis: int | None, index: str, depth: str, value: str, shape: str = "[2, 3]") -> str:
    attribute = "" if axis is None else f"<axis = {axis}>"
    return f"11 ({index}{shape} i, {depth} n, {value}[2] v) => ({value} y) {{ y = OneHot {attribute} (i, n, v) }}"


def feeds(index: Any, depth: Any, values: Any) -> dict[str, np.ndarray[Any, Any]]:
    indices = np.array([[0, 3, -1], [-5, 5, 2]], index)
    return {"i": indices, "n": np.array(5, depth), "v": np.array(values)}


@pytest.mark.parametrize("axis", [None, -1, 0, 1, 2, -2, -3])
def test_axes(axis: int | None) -> None:
    given = feeds(np.int64, np.int64, np.array([-0.0, np.nan], np.float32))
    low = {"unranked": "needs-rank"}
    check_down(
        text(axis, "int64", "int64", "float"), 10, 9, feeds=given, refused=low if axis in (-2, -3) else None
    )
    check_down(text(axis, "int64", "int64", "float"), 8, 7, feeds=given, refused=low)


@pytest.mark.parametrize(
    ("index", "depth", "value"),
    [("int32", "float", "float"), ("int64", "int32", "float"), ("float", "float", "float"), ("int64", "int64", "int64"),
     ("float", "int64", "int64")],
)  # fmt: skip
def test_types(index: str, depth: str, value: str) -> None:
    names = {"float": "float32"}
    given = feeds(
        names.get(index, index), names.get(depth, depth), np.array([7, -2], names.get(value, value))
    )
    check_down(text(None, index, depth, value), 10, 9, 7, feeds=given, variants=("plain", "symbolic", "if"))


def test_narrow_indices() -> None:
    """ONNX Runtime has no kernel of these types."""
    for name in ("int8", "uint8", "int16"):
        given = feeds(np.int64, np.int64, np.array([0, 1], np.float32))
        given["i"] = np.array([[0, 3, 1], [4, 2, 5]]).astype(name)
        if name != "uint8":
            given["i"][0, 0] = -2
        expected = np.vstack([np.eye(5, dtype=np.float32), np.zeros((1, 5), np.float32)])[given["i"] % 6]
        if name != "uint8":
            expected[0, 0] = np.eye(5)[3]
        for target in (10, 9):
            result, _ = lower(text(None, name, "int64", "float"), target)
            [found] = reference(result, given, None)
            np.testing.assert_array_equal(found, expected)


def test_fractions() -> None:
    """By the standard they are cut off; ONNX Runtime finds no place for them."""
    given = feeds(np.float32, np.float32, np.array([0, 1], np.float32))
    given["i"] = np.array([[0.5, -0.5, 1.9], [-1.5, -4.9, 4.9]], np.float32)
    expected = np.eye(5, dtype=np.float32)[given["i"].astype(int)]
    check_down(text(None, "float", "float", "float"), 10, 9, feeds=given, expected=[expected])
    source = text(None, "float", "float", "float")
    check_down(source, 8, 7, feeds=given, expected=[expected], refused={"unranked": "needs-rank"})


def test_known_indices_and_depth() -> None:
    known = """11 (float[2] v) => (float[3, 4] y)
        <int64[3] i = {0, 3, 1}, int64[1] n = {4}> { y = OneHot (i, n, v) }"""
    check_down(known, 10, 9, 7)
