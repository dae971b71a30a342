"""Pow of two types, Mod, and Round."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.lowering import check_down, lower, special_values

FLOATS = ["float", "double", "float16"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def dtype_of(name: str) -> np.dtype:  # type: ignore[type-arg]
    return np.dtype({"float": "float32", "double": "float64"}.get(name, name))


@pytest.mark.parametrize(
    ("base", "exponent"), list(itertools.product(["float", "double", "float16", "int32", "int64"], repeat=2))
)
def test_pow_of_two_types(base: str, exponent: str) -> None:
    x = special_values(dtype_of(base))[:, None]
    y = special_values(dtype_of(exponent))[None, :]
    source = f"""<ir_version: 7, opset_import: ["": 13]> g ({base}[{x.size},1] x, {exponent}[1,{y.size}] y)
        => ({base}[{x.size},{y.size}] z) {{ z = Pow (x, y) }}"""
    check_down(source, 12, 11, 9, feeds={"x": x, "y": y}, variants=("plain", "symbolic", "unranked", "if"))
    check_down(source, 11, 7, feeds={"x": x, "y": y}, variants=("plain", "function"))


EXPONENTS = ["int64 e = {2}", "int32 e = {3}", "float e = {0.5}", "int64 e = {16777217}", "double e = {0.1}"]


@pytest.mark.parametrize("exponent", EXPONENTS)
@pytest.mark.parametrize("base", ["float", "double"])
def test_pow_with_a_constant_exponent(base: str, exponent: str) -> None:
    lowered = check_down(
        f"""<ir_version: 7, opset_import: ["": 12]> g ({base}[4,5] x) => ({base}[4,5] z) <{exponent}> {{ z = Pow (x, e) }}""",
        11,
        7,
    )
    holds = base == "double" or exponent not in ("int64 e = {16777217}", "double e = {0.1}")
    assert (len(lowered.graph.node) == 1) == holds


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("fmod", [0, 1])
def test_mod(dtype: str, fmod: int) -> None:
    kind = dtype_of(dtype)
    pool = special_values(kind)
    a, b = pool[:, None], pool[None, :]
    if kind.kind != "f":
        a = a[a[:, 0] != np.iinfo(kind).min]  # the smallest integer / -1 ends ONNX Runtime
        b = b[:, b[0] != 0]
    with np.errstate(all="ignore"):
        expected = (np.fmod if fmod else np.mod)(a, b)
    for opset in (10, 13, 28):
        if kind.kind == "f" and not fmod and opset < 28:
            continue
        targets = (9, 8) if kind.kind != "f" else (26, 12) if opset == 28 else (12,) if opset == 13 else ()
        if not targets:
            continue
        check_down(
            f"""<ir_version: 7, opset_import: ["": {opset}]> g ({dtype}[{a.size},1] a, {dtype}[1,{b.size}] b)
            => ({dtype}[{a.size},{b.size}] z) {{ z = Mod <fmod = {fmod}> (a, b) }}""",
            *targets,
            feeds={"a": a, "b": b},
            expected=[expected],
            variants=("plain", "symbolic", "unranked", "if"),
        )


def test_the_rest_of_a_float_division_is_refused() -> None:
    with pytest.raises(CannotMigrate) as caught:
        lower(
            """<ir_version: 7, opset_import: ["": 10]> g (float[2] a, float[2] b) => (float[2] z)
            { z = Mod <fmod = 1> (a, b) }""",
            9,
        )
    assert caught.value.code == "no-equal"


@pytest.mark.parametrize("dtype", FLOATS)
def test_round(dtype: str) -> None:
    kind = dtype_of(dtype)
    halves = np.arange(-20, 20) / 2
    info = np.finfo(kind)
    exact = 2.0 ** (info.nmant + 1)
    near = [np.nextafter(kind.type(0.5), kind.type(side)) for side in (0, 1)]
    large = [
        exact,
        exact - 1,
        exact / 2 + 0.5,
        exact / 2 - 0.5,
        exact / 2 + 1.5,
        exact / 4 + 0.25,
        exact / 4 + 0.75,
    ]
    random = np.random.default_rng(0).standard_normal(1000) * 100
    x = np.concatenate([halves, near, large, np.negative(near), np.negative(large), random]).astype(kind)
    x = np.concatenate([x, special_values(kind)])
    for opset in (11, 22):
        check_down(
            f"""<ir_version: 10, opset_import: ["": {opset}]> g ({dtype}[{len(x)}] x) => ({dtype}[{len(x)}] y)
            {{ y = Round (x) }}""",
            10,
            8,
            7,
            feeds={"x": x},
        )


@pytest.mark.parametrize("operator", ["Acosh", "Asinh", "Atanh", "Cosh", "Erf", "Sinh"])
def test_functions_that_begin_with_9_are_refused_below(operator: str) -> None:
    source = (
        f"""<ir_version: 7, opset_import: ["": 13]> g (float[2] x) => (float[2] y) {{ y = {operator} (x) }}"""
    )
    lower(source, 9)
    with pytest.raises(CannotMigrate) as caught:
        lower(source, 8)
    assert caught.value.code == "no-equal"
