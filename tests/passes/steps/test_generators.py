"""Range, Trilu, EyeLike and Bernoulli below the opsets that they begin with."""

from __future__ import annotations

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import run
from tests.lowering import check_down, lower, special_values

NUMBERS = [
    (0, 5, 1),
    (3, 9, 3),
    (10, 4, -2),
    (2, 2, 1),
    (5, 1, 1),
    (1, 5, -1),
    (0, 10, 3),
    (0, -10, -3),
    (-7, 8, 4),
]


def dtype_of(name: str) -> np.dtype:  # type: ignore[type-arg]
    return np.dtype({"float": "float32", "double": "float64"}.get(name, name))


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float", "double"])
def test_range_at_run_time(dtype: str) -> None:
    for start, limit, delta in NUMBERS:
        feeds = {
            name: np.array(value, dtype_of(dtype))
            for name, value in (("start", start), ("limit", limit), ("delta", delta))
        }
        source = f"""<ir_version: 7, opset_import: ["": 11]> g ({dtype} start, {dtype} limit, {dtype} delta)
            => ({dtype}[k] y) {{ y = Range (start, limit, delta) }}"""
        check_down(source, 10, 9, feeds=feeds, variants=("plain",))
    check_down(source, 10, 9, feeds=feeds)


def test_range_of_floats_adds_up_as_the_original() -> None:
    feeds = {name: np.array(value, np.float32) for name, value in (("a", 0.1), ("b", 30), ("c", 0.1))}
    source = """<ir_version: 7, opset_import: ["": 11]> g (float a, float b, float c) => (float[k] y) { y = Range (a, b, c) }"""
    check_down(source, 10, 9, feeds=feeds)


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float", "double"])
def test_range_of_constants(dtype: str) -> None:
    for start, limit, delta in [*NUMBERS, *([(0.1, 3, 0.1)] if dtype in ("float", "double") else [])]:
        check_down(
            f"""<ir_version: 7, opset_import: ["": 11]> g (float[1] x) => ({dtype}[k] y, float[1] z)
            <{dtype} start = {{{start}}}, {dtype} limit = {{{limit}}}, {dtype} delta = {{{delta}}}>
            {{ z = Identity (x) y = Range (start, limit, delta) }}""",
            10,
            9,
            variants=("plain", "function"),
        )


def test_range_from_a_shape() -> None:
    for shape in ([4], [0]):
        check_down(
            f"""<ir_version: 7, opset_import: ["": 11]> g (float{shape} x) => (int64[k] y)
            <int64 zero = {{0}}, int64 one = {{1}}>
            {{ size = Shape (x) n = Squeeze <axes = [0]> (size) y = Range (zero, n, one) }}""",
            10,
            9,
            variants=("plain", "symbolic", "unranked", "if"),
            specials=False,
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_range_of_half_floats(dtype: str) -> None:
    source = f"""<ir_version: 13, opset_import: ["": 27]> g (float a) => (float[k] y)
        <float limit = {{5.0}}, float delta = {{0.5}}>
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
    with pytest.raises(CannotMigrate) as caught:
        lower(source % "<stash_type = 10>", 26)
    assert caught.value.code == "no-equal"


KS = [None, 0, 1, -1, 3, -5, 2**63 - 1, 1 - 2**63]


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("shape", [[3, 4], [2, 4, 3], [5, 5], [2, 0, 3], [1, 1]], ids=str)
def test_trilu(upper: int, shape: list[int]) -> None:
    for k in KS:
        declared, argument = ("", "") if k is None else (f"<int64 k = {{{k}}}>", ", k")
        check_down(
            f"""<ir_version: 7, opset_import: ["": 14]> g (float{shape} x) => (float{shape} y) {declared}
            {{ y = Trilu <upper = {upper}> (x{argument}) }}""",
            13,
            10,
            9,
            specials=0 not in shape,
        )


@pytest.mark.parametrize("upper", [0, 1])
def test_trilu_with_k_at_run_time(upper: int) -> None:
    for k in KS[1:]:
        check_down(
            f"""<ir_version: 7, opset_import: ["": 14]> g (float[4,5] x, int64 k) => (float[4,5] y)
            {{ y = Trilu <upper = {upper}> (x, k) }}""",
            13,
            9,
            feeds={"x": np.resize(special_values(np.dtype(np.float32)), (4, 5)), "k": np.array(k, np.int64)},
        )


@pytest.mark.parametrize("dtype", ["double", "int64", "bool", "int32", "float16", "uint8", "int16", "uint64"])
def test_trilu_of_every_type(dtype: str) -> None:
    x = np.resize(special_values(dtype_of(dtype)), (4, 3))
    for upper in (0, 1):
        check_down(
            f"""<ir_version: 7, opset_import: ["": 14]> g ({dtype}[4,3] x) => ({dtype}[4,3] y)
            {{ y = Trilu <upper = {upper}> (x) }}""",
            13,
            9,
            feeds={"x": x},
            expected=[np.triu(x) if upper else np.tril(x)],
            variants=("plain", "symbolic"),
        )


def test_trilu_below_9() -> None:
    check_down(
        """<ir_version: 7, opset_import: ["": 14]> g (int64[4,3] x) => (int64[4,3] y) { y = Trilu (x) }""",
        8,
        7,
        variants=("plain",),
    )


@pytest.mark.parametrize("attributes", ["", "<k = 1>", "<k = -2, dtype = 7>", "<dtype = 1>"])
def test_eye_like(attributes: str) -> None:
    kind = "int64" if "7" in attributes else "float"
    check_down(
        f"""<ir_version: 7, opset_import: ["": 9]> g (float[3,4] x) => ({kind}[3,4] y) {{ y = EyeLike {attributes} (x) }}""",
        8,
        7,
        variants=("plain", "symbolic", "unranked", "if"),
    )


@pytest.mark.parametrize("attributes", ["", "<dtype = 7, seed = 2.0>"])
def test_bernoulli(attributes: str) -> None:
    kind = "int64" if "7" in attributes else "float"
    source = f"""<ir_version: 8, opset_import: ["": 15]> g (float[2,1000] x) => ({kind}[2,1000] y)
        {{ y = Bernoulli {attributes} (x) }}"""
    x = np.stack([np.zeros(1000), np.full(1000, 0.25)]).astype(np.float32)
    for target in (14, 9, 7):
        lowered, _ = lower(source, target)
        (y,) = run(lowered, {"x": x})
        assert y.dtype == dtype_of(kind)
        assert set(np.unique(y)) == {0, 1}
        assert y[0].max() == 0
        assert abs(y[1].mean() - 0.25) < 0.08
