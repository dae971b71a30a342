"""Comparisons, tests of values and Where: every pair of special values of every type."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import FLOATS, INTEGERS, NUMPY_TYPES, dtype_of, loads
from tests.steps import check_down, element_wise, lower, operators, special_values

COMPARED = {
    "Greater": np.greater, "Less": np.less, "Equal": np.equal, "GreaterOrEqual": np.greater_equal,
    "LessOrEqual": np.less_equal,
}  # fmt: skip
ALL = ("plain", "symbolic", "unranked", "if")
NUMBERS = [*FLOATS, *INTEGERS]
PAIRS = [
    # operators, types, opsets, targets
    (("GreaterOrEqual", "LessOrEqual"), NUMBERS, (12, 16), (11, 10, 8, 7)),
    (("Equal",), [*NUMBERS, "bool"], (11, 13, 19), (10, 9, 7)),
    (("Greater", "Less"), NUMBERS, (9,), (8, 7)),
]


@pytest.mark.parametrize(
    ("operator", "dtype", "opset", "targets"),
    [
        (name, kind, opset, to)
        for names, kinds, opsets, to in PAIRS
        for name in names
        for kind in kinds
        for opset in opsets
    ],
)
def test_every_pair(operator: str, dtype: str, opset: int, targets: tuple[int, ...]) -> None:
    pool = special_values(dtype_of(dtype))
    if dtype in ("int64", "uint64"):
        near = np.array([2**32, 2**32 - 1, 2**32 + 1, 2**53, 2**53 + 1, 2**62 + 1, 2**62], np.int64)
        pool = np.concatenate([pool, near.astype(dtype), (-near).astype(dtype)])
    feeds = {"a": pool[:, None], "b": pool[None, :]}
    source = element_wise(opset, f"{operator} (a, b)", feeds, "bool")
    check_down(source, *targets, feeds=feeds, expected=[COMPARED[operator](*feeds.values())], variants=ALL)


@pytest.mark.parametrize("operator", ["Equal", "GreaterOrEqual", "LessOrEqual"])
@pytest.mark.parametrize("fixed", [True, False], ids=["0.5", "NaN at run time"])
def test_a_constant_without_nan_is_not_asked_for_it(operator: str, fixed: bool) -> None:
    x = special_values(np.dtype(np.float32))
    value = np.float32(0.5 if fixed else np.nan)
    inputs, constants = ("", "<float[1] half = {0.5}>") if fixed else (", float[1] half", "")
    source = (
        f"12 (float[{len(x)}] x{inputs}) => (bool[{len(x)}] y) {constants} {{ y = {operator} (x, half) }}"
    )
    feeds = {"x": x} if fixed else {"x": x, "half": np.array([value])}
    lowered = check_down(
        source, 10, feeds=feeds, expected=[COMPARED[operator](x, value)], variants=("plain",)
    )
    assert operators(lowered).count("IsNaN") == (1 if fixed else 2)


@pytest.mark.parametrize("operator", COMPARED)
def test_functions_and_empty_tensors(operator: str) -> None:
    """Functions are inlined for the type."""
    source = f"16 (float[3] a, float[3] b) => (bool[3] y) {{ y = {operator} (a, b) }}"
    check_down(source, 10, 7, variants=("function",))
    check_down(
        f"13 (float[0] a, float[0] b) => (bool[0] y) {{ y = {operator} (a, b) }}", 7, variants=("plain",)
    )


def test_strings_are_refused() -> None:
    with pytest.raises(CannotMigrate):
        lower("19 (string[3] a, string[3] b) => (bool[3] y) { y = Equal (a, b) }", 10)


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("negative", [0, 1])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_is_inf(positive: int, negative: int, dtype: str) -> None:
    call = f"IsInf <detect_positive = {positive}, detect_negative = {negative}> (x)"
    check_down(f"10 ({dtype}[3,7] x) => (bool[3,7] y) {{ y = {call} }}", 9, 7)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("operator", ["IsNaN", "IsInf"])
def test_is_nan_and_is_inf_from_20(dtype: str, operator: str) -> None:
    check_down(f"20 ({dtype}[3,7] x) => (bool[3,7] y) {{ y = {operator} (x) }}", 19, 9, 8, 7)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_sign(dtype: str) -> None:
    check_down(f"9 ({dtype}[3,7] x) => ({dtype}[3,7] y) {{ y = Sign (x) }}", 8, 7)


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_sign_loads(dtype: str) -> None:
    assert loads(lower(f"9 ({dtype}[3,7] x) => ({dtype}[3,7] y) {{ y = Sign (x) }}", 8)[0])


@pytest.mark.parametrize("name", NUMPY_TYPES)
def test_where(name: str) -> None:
    pool = special_values(np.dtype(name))
    x, c = {"x": pool, "y": np.roll(pool, 1)}, np.arange(len(pool)) % 3 == 0
    source = element_wise(9, "Where (c, x, y)", {**x, "c": c}).replace("9 ", "9 ir3 ", 1)
    expected = [np.where(c, *x.values())]
    check_down(source, 8, 7, feeds={**x, "c": c}, expected=expected, variants=("plain", "symbolic", "if"))


@pytest.mark.parametrize("text", ["float", "int32"])
@pytest.mark.parametrize(
    ("c", "x", "y", "out"),
    [
        ("[2,3]", "[2,3]", "[2,3]", "[2,3]"), ("[]", "[2,3]", "[2,3]", "[2,3]"), ("[3]", "[2,1]", "[]", "[2,3]"),
        ("[2,1]", "[1,3]", "[4,1,1]", "[4,2,3]"), ("[1]", "[1]", "[1]", "[1]"),
    ],
)  # fmt: skip
def test_where_broadcasts(c: str, x: str, y: str, out: str, text: str) -> None:
    source = f"9 ir3 (bool{c} c, {text}{x} x, {text}{y} y) => ({text}{out} z) {{ z = Where (c, x, y) }}"
    check_down(source, 8, 7, variants=ALL, specials=False)


@pytest.mark.parametrize("text", ["float", "int64", "bool"])
def test_where_of_no_elements(text: str) -> None:
    source = f"9 ir3 (bool[0] c, {text}[2,0] x, {text}[2,0] y) => ({text}[2,0] z) {{ z = Where (c, x, y) }}"
    check_down(source, 8, expected=[np.zeros((2, 0), dtype_of(text))], variants=("plain",))


def test_where_of_strings_of_fixed_shapes() -> None:
    source = "9 ir3 (bool[2] c, string[2] x, string[2] y) => (string[2] z) { z = Where (c, x, y) }"
    feeds = {
        "c": np.array([True, False]),
        "x": np.array(["a", "b"], object),
        "y": np.array(["c", "d"], object),
    }
    check_down(source, 8, feeds=feeds, refused={"symbolic": "needs-shape"}, variants=("plain", "symbolic"))
