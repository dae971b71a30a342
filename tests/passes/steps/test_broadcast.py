"""Broadcasting: by axis and broadcast upward, and Expand, Max, Mean, Min and Sum of several shapes below 8."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.harness import dtype_of, make_variant, model, text_type
from tests.steps import check, check_down, lift, refuses

ALL = ("plain", "symbolic", "unranked", "if")


def expand(x: list[int], shape: list[int], dtype: str = "float") -> str:
    return f"""8 ir3 ({dtype}{x or ""} x, int64[{len(shape)}] s) => ({dtype}[] y)
        <int64[{len(shape)}] s = {{{", ".join(map(str, shape))}}}> {{ y = Expand (x, s) }}"""


@pytest.mark.parametrize(
    ("x", "shape"),
    [([3, 1], [3, 4]), ([1], [2, 3]), ([], [2, 2]), ([2, 3], [1]), ([3], [3]), ([1, 2], [3, 1, 2])],
)
@pytest.mark.parametrize("dtype", ["float", "double", "int64", "bool"])
def test_expand(x: list[int], shape: list[int], dtype: str) -> None:
    count = int(np.prod(x))
    values = np.array(
        [0.5, -0.0, np.nan, np.inf, -1.0, 3.0][:count] if dtype in ("float", "double") else range(count)
    )
    feeds = {"x": values.reshape(x).astype(dtype_of(dtype))}
    check_down(expand(x, shape, dtype), 7, feeds=feeds, variants=ALL)


def test_expand_of_small_integers() -> None:
    feeds = {"x": np.array([[1], [2], [3]], np.int8)}
    check_down(expand([3, 1], [3, 2], "int8"), 7, feeds=feeds, variants=("plain", "symbolic"))


@pytest.mark.parametrize("dtype", ["float", "double", "int64", "bool", "int8", "float16"])
@pytest.mark.parametrize("shape", [[3, 2], [1], [2, 3, 1], [0]])
def test_expand_at_run_time(dtype: str, shape: list[int]) -> None:
    source = f"8 ({dtype}[3, 1] x, int64[{len(shape)}] s) => ({dtype}[] y) {{ y = Expand (x, s) }}"
    feeds = {"x": np.array([[1], [0], [7]]).astype(dtype_of(dtype)), "s": np.array(shape)}
    check_down(source, 7, feeds=feeds, variants=ALL)


def test_expand_of_strings_at_run_time_is_refused() -> None:
    source = "8 (string[3, 1] x, int64[2] s) => (string[] y) { y = Expand (x, s) }"
    feeds = {"x": np.array([["a"], ["b"], ["c"]], object), "s": np.array([3, 2])}
    check_down(source, 7, feeds=feeds, refused="needs-constant", variants=("plain",))


@pytest.mark.parametrize(
    ("operator", "function"), [("Sum", np.sum), ("Mean", np.mean), ("Max", np.max), ("Min", np.min)]
)
@pytest.mark.parametrize(
    "shapes",
    [[[2, 3]], [[2, 3], [2, 3]], [[2, 3], [3]], [[2, 1], [3], [4, 1, 1]], [[], [2, 3], [2, 3]]],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_several_shapes(
    operator: str, function: Callable[..., Any], shapes: list[list[int]], dtype: str
) -> None:
    names = [f"x{index}" for index in range(len(shapes))]
    declared = ", ".join(f"{dtype}{shape or ''} {name}" for shape, name in zip(shapes, names, strict=True))
    source = f"8 ir3 ({declared}) => ({dtype}[] y) {{ y = {operator} ({', '.join(names)}) }}"
    if dtype == "float":
        open_sign = operator in ("Max", "Min") and len(shapes) > 1  # of a zero
        check_down(source, 7, variants=ALL, atol=1e-30 if open_sign else 0.0)
        return
    # ONNX Runtime has no kernels for version 8, and onnx.reference computes only some of them
    feeds = {
        name: np.asarray(np.random.default_rng(i).standard_normal(shapes[i])) for i, name in enumerate(names)
    }
    expected = [function(np.stack(np.broadcast_arrays(*feeds.values())), axis=0)]
    check_down(source, 7, feeds=feeds, expected=expected, variants=("plain",), rtol=1e-14)


# Upward: NumPy computes the numbers on explicitly aligned shapes

SHAPE = (2, 3, 4, 5)
RNG = np.random.default_rng(1)
A = RNG.standard_normal(SHAPE).astype(np.float32)

RANKED = ("plain", "symbolic", "if", "function")


def _source(
    operator: str, shape: tuple[int, ...], attributes: str, kind: str = "float", result: str = ""
) -> str:
    dims = f"[{','.join(map(str, shape))}]" if shape else ""
    written = f"<{attributes}>" if attributes else ""
    return f"""6 ({kind}[2,3,4,5] a, {kind}{dims} b)
        => ({result or kind}[2,3,4,5] y) {{ y = {operator} {written} (a, b) }}"""


@pytest.mark.parametrize(
    ("shape", "attributes", "aligned"),
    [
        ((), "broadcast = 1", ()),
        ((1, 1), "broadcast = 1", (1, 1)),
        ((5,), "broadcast = 1", (5,)),
        ((4, 5), "broadcast = 1", (4, 5)),
        ((3, 4), "broadcast = 1, axis = 1", (3, 4, 1)),
        ((2,), "broadcast = 1, axis = 0", (2, 1, 1, 1)),
        ((4, 5), "broadcast = 1, axis = 2", (4, 5)),
        ((5,), "broadcast = 1, axis = -1", (5,)),
        ((1,), "broadcast = 1, axis = 1", (1,)),
        (SHAPE, "", SHAPE),
        (SHAPE, "axis = 1", SHAPE),
        (SHAPE, "broadcast = 1, axis = 0", SHAPE),
    ],
)
def test_aligned_shapes(shape: tuple[int, ...], attributes: str, aligned: tuple[int, ...]) -> None:
    b = np.asarray(RNG.standard_normal(shape), np.float32)
    source, feeds, expected = _source("Sub", shape, attributes), {"a": A, "b": b}, [A - b.reshape(aligned)]
    check(source, feeds=feeds, expected=expected, variants=RANKED)
    if "axis = -" in attributes:
        return
    check(source, feeds=feeds, expected=expected, variants=["unranked"], to=10)
    if "axis" in attributes and "broadcast" in attributes:
        refuses("needs-rank", lift, make_variant(model(source), "unranked", {})[0], 7)


NUMBERS = RNG.standard_normal((3, 4)).astype(np.float32)
WHOLE, ROUNDED = np.round(A), np.round(NUMBERS)
BITS = RNG.random((3, 4)) < 0.5
OPERATORS: list[tuple[str, str, Any, Any, Callable[..., Any]]] = [
    ("Add", "float", A, NUMBERS, np.add),
    ("Sub", "float", A, NUMBERS, np.subtract),
    ("Mul", "float", A, NUMBERS, np.multiply),
    ("Div", "float", A, NUMBERS, np.divide),
    ("And", "bool", A > 0, BITS, np.logical_and),
    ("Or", "bool", A > 0, BITS, np.logical_or),
    ("Xor", "bool", A > 0, BITS, np.logical_xor),
    ("Equal", "bool", WHOLE.astype(np.int32), ROUNDED.astype(np.int32), np.equal),
    ("Greater", "bool", WHOLE, ROUNDED, np.greater),
    ("Less", "bool", WHOLE, ROUNDED, np.less),
    ("Pow", "float", np.abs(A), np.array([0, 1, 2], np.float32), np.power),
]


@pytest.mark.parametrize(
    ("operator", "result", "a", "b", "function"), OPERATORS, ids=[row[0] for row in OPERATORS]
)
def test_operators(operator: str, result: str, a: Any, b: Any, function: Callable[..., Any]) -> None:
    source = _source(operator, b.shape, "broadcast = 1, axis = 1", text_type(a.dtype), result)
    expected = [function(a, b.reshape(*b.shape, *[1] * (3 - b.ndim)))]
    rtol = 1e-6 if operator == "Pow" else 0.0
    check(source, feeds={"a": a, "b": b}, expected=expected, variants=RANKED, rtol=rtol)
    check(source, feeds={"a": a, "b": b}, expected=expected, variants=["unranked"], to=10, rtol=rtol)


def test_a_constant_operand_is_reshaped_if_the_rank_of_the_first_is_unknown() -> None:
    source = """1 (float[2,3,4,5] a) => (float[2,3,4,5] y)
        <float[3] b = {1, 2, 3}> { y = Add <broadcast = 1, axis = 1, consumed_inputs = [0, 0]> (a, b) }"""
    b = np.array([1, 2, 3], np.float32)[:, None, None]
    check(source, to=7, feeds={"a": A}, expected=[A + b])


def test_a_length_of_zero() -> None:
    source = """6 (float[2,3,0] a) => (float[2,3,0] y)
        <float[3] b = {1, 2, 3}> { y = Add <broadcast = 1, axis = 1> (a, b) }"""
    a = np.zeros((2, 3, 0), np.float32)
    check(source, feeds={"a": a}, expected=[a])


def test_a_negative_axis_counts_from_the_last() -> None:
    b = RNG.standard_normal(3).astype(np.float32)
    source = _source("Mul", (3,), "broadcast = 1, axis = -3")
    check(source, feeds={"a": A, "b": b}, expected=[A * b[:, None, None]], refused={"unranked": "needs-rank"})


@pytest.mark.parametrize(
    ("shape", "aligned"), [((3,), (3, 1, 1)), ((1,), (1,)), ((3, 1, 1), (3, 1, 1)), (SHAPE, SHAPE)]
)
def test_prelu(shape: tuple[int, ...], aligned: tuple[int, ...]) -> None:
    slope = RNG.random(shape).astype(np.float32)
    dims = ",".join(map(str, shape))
    source = f"""1 (float[2,3,4,5] x, float[{dims}] s)
        => (float[2,3,4,5] y) {{ y = PRelu <consumed_inputs = [0, 0]> (x, s) }}"""
    expected = np.where(A < 0, A * slope.reshape(aligned), A)
    check(source, to=7, feeds={"x": A, "s": slope}, expected=[expected], variants=RANKED)
    check(source, to=10, feeds={"x": A, "s": slope}, expected=[expected], variants=["unranked"])


def test_prelu_of_two_dimensions() -> None:
    x, slope = A[0, 0], np.array([0.5, 0.25, 2, 3, 4], np.float32)
    source = "6 (float[4,5] x) => (float[4,5] y) <float[5] s = {0.5, 0.25, 2, 3, 4}> { y = PRelu (x, s) }"
    check(source, feeds={"x": x}, expected=[np.where(x < 0, x * slope, x)])


@pytest.mark.parametrize(
    ("c", "attributes"), [("2,4", ""), ("4", ", broadcast = 1"), ("1", ", broadcast = 1")]
)
def test_gemm(c: str, attributes: str) -> None:
    source = f"""1 (float[3,2] a, float[3,4] b, float[{c}] c) => (float[2,4] y)
        {{ y = Gemm <transA = 1, alpha = 0.5, beta = 2.0{attributes}> (a, b, c) }}"""
    a, b = (RNG.integers(-4, 5, shape).astype(np.float32) for shape in ((3, 2), (3, 4)))
    bias = RNG.integers(-4, 5, [int(dim) for dim in c.split(",")]).astype(np.float32)
    feeds = {"a": a, "b": b, "c": bias}
    check(source, to=7, feeds=feeds, expected=[np.float32(0.5) * (a.T @ b) + 2 * bias])
