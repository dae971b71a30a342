"""Clip, Max and Min of every type, with known, missing and run-time bounds, up and down."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import dtype_of, model, run
from tests.steps import check, check_down, lift, lower, refuses, special_values

FLOATS = ["float", "double", "float16"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("bounds", ["low, high", "low", '"", high', ""])
def test_constant_bounds(dtype: str, bounds: str) -> None:
    inputs = f"x, {bounds}" if bounds else "x"
    used = [name for name in ("low", "high") if name in bounds]
    values = {"low": "1.5" if dtype in FLOATS else "2", "high": "2.5" if dtype in FLOATS else "5"}
    plain = "float" if dtype == "float16" else dtype  # onnx's parser reads no float16
    suffix = "_wide" if dtype == "float16" else ""
    initializers = ", ".join(f"{plain} {name}{suffix} = {{{values[name]}}}" for name in used)
    declared = f"<{initializers}>" if used else ""
    casts = " ".join(f"{name} = Cast <to = 10> ({name}_wide)" for name in used if suffix)
    x = special_values(dtype_of(dtype))
    source = f"""13 ({dtype}[{len(x)}] x) => ({dtype}[{len(x)}] y) {declared}
        {{ {casts} y = Clip ({inputs.replace('""', "")}) }}"""
    check_down(source, 12, 11, 10, 9, 8, feeds={"x": x}, variants=("plain",))
    last = 8 if dtype == "double" else 7
    check_down(source, 10, last, feeds={"x": x})


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("bounds", ["low, high", "low", '"", high'])
def test_bounds_at_run_time(dtype: str, bounds: str) -> None:
    x = special_values(dtype_of(dtype))
    for low, high in ((1, 3), (3, 1)):
        used = [name for name in ("low", "high") if name in bounds]
        given = {
            name: np.array(value, x.dtype) for name, value in (("low", low), ("high", high)) if name in used
        }
        arguments = ", ".join(f"{dtype} {name}" for name in used)
        source = f"""13 ({dtype}[{len(x)}] x, {arguments}) => ({dtype}[{len(x)}] y)
            {{ y = Clip (x, {bounds.replace('""', "")}) }}"""
        check_down(source, 12, 11, 10, 8, feeds={"x": x, **given}, variants=("plain", "unranked", "if"))


def test_a_bound_that_float32_does_not_hold() -> None:
    x = np.array([0.05, 0.1, 0.2], np.float64)
    check_down(
        "12 (double[3] x) => (double[3] y) <double low = {0.1}> { y = Clip (x, low) }", 10, feeds={"x": x}
    )


def test_a_bound_that_can_be_overridden_stays_an_input() -> None:
    check_down(
        "11 (float[3] x, float low = {0.5}) => (float[3] y) { y = Clip (x, low) }",
        10,
        feeds={"x": np.array([-1, 1, 3], np.float32), "low": np.array(2, np.float32)},
        variants=("plain",),
    )


@pytest.mark.parametrize("operator", ["Max", "Min"])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
def test_max_and_min(operator: str, dtype: str) -> None:
    pool = special_values(dtype_of(dtype))
    n = len(pool)
    a, b = pool[:, None], pool[None, :]
    kernel = dtype not in ("int16", "uint16")
    for arguments in ("a, b", "a", "a, b, a"):
        many = arguments != "a"
        expected = (np.maximum if operator == "Max" else np.minimum)(a, b) if many else a
        check_down(
            f"""13 ({dtype}[{n},1] a, {dtype}[1,{n}] b)
            => ({dtype}[{n},{n if many else 1}] y) {{ y = {operator} ({arguments}) }}""",
            12,
            11,
            8,
            feeds={"a": a, "b": b},
            expected=None if kernel else [expected],
            atol=1e-30
            if dtype == "float16"
            else 0,  # its kernels of version 13 and 8 differ in the sign of Max(0, -0)
            variants=("plain", "symbolic", "unranked", "if"),
        )


def test_max_of_integers_at_7() -> None:
    for dtype in INTEGERS:
        check_down(
            f"13 ({dtype}[3] a, {dtype}[3] b) => ({dtype}[3] y) {{ y = Max (a, b) }}",
            7,
            variants=("plain",),
            expected=[np.array([3, 2, 5], dtype)],
            feeds={"a": np.array([3, 1, 5], dtype), "b": np.array([2, 2, 5], dtype)},
        )


def test_empty_tensors() -> None:
    for dtype in ("float", "int64", "int32"):
        source = f"""13 ({dtype}[0] x, {dtype} low) => ({dtype}[0] y, {dtype}[0] z)
            {{ y = Clip (x, low) z = Max (x, low) }}"""
        check_down(source, 10, variants=("plain",))


def test_an_input_that_is_left_out_at_the_end_stays_where_nothing_changes() -> None:
    source = model('12 (float[2] x, float low) => (float[2] y) { y = Clip (x, low, "") }')
    lowered, log = lower(source, 11)
    assert list(lowered.graph.node[0].input) == ["x", "low", ""]
    assert not log.changes


EDGES = np.array([-np.inf, -3e38, -7, -1, -0.0, 0, 0.5, 6.5, 3e38, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    "attributes", ["min = 0.0, max = 6.0", "min = -1.0", "max = 0.5", "", "min = 2.0, max = -2.0"]
)
@pytest.mark.parametrize("opset", [6, 10])
def test_float(attributes: str, opset: int) -> None:
    written = f"<{attributes}>" if attributes else ""
    source = f"{opset} (float[11] x) => (float[11] y) {{ y = Clip {written} (x) }}"
    result = check(source, to=11, feeds={"x": EDGES})
    assert not result.graph.node[0].attribute


def test_explicit_limits_of_float() -> None:
    source = """10 (float[11] x) => (float[11] y)
        { y = Clip <min = -3.4028234663852886e+38, max = 3.4028234663852886e+38> (x) }"""
    check(source, to=11, feeds={"x": EDGES})


@pytest.mark.parametrize(("kind", "dtype"), [("double", np.float64), ("float16", np.float16)])
def test_bounds_have_the_data_type(kind: str, dtype: type[np.floating]) -> None:
    """ONNX Runtime's Clip-6 supports float only: the expected bounds are the attributes, rounded to the type."""
    x = np.array([-7, -1, 0.1, 0.25, 6.5, 100], dtype)
    source = f"10 ({kind}[6] x) => ({kind}[6] y) {{ y = Clip <min = 0.1, max = 6.0> (x) }}"
    low = dtype(np.float32(0.1))
    check(source, to=12, feeds={"x": x}, expected=[np.minimum(np.maximum(x, low), dtype(6))])


def test_a_bound_beyond_the_range_of_float16_clips_nothing() -> None:
    x = np.array([-60000, 1, 60000, np.inf], np.float16)
    source = "10 (float16[4] x) => (float16[4] y) { y = Clip <min = 0.0, max = 1e9> (x) }"
    check(source, to=12, feeds={"x": x}, expected=[np.maximum(x, np.float16(0))])


REFERENCE = """10 ({kind}[6] x) => ({kind}[6] y) {{ y = local.Bounded <low = -1.5> (x) }}
    <opset_import: ["": 10], domain: "local"> Bounded <low> (a) => (b)
    {{ b = Clip <min: float = @low, max = 2.0> (a) }}"""


@pytest.mark.parametrize(
    ("kind", "dtype"), [("float", np.float32), ("double", np.float64), ("float16", np.float16)]
)
def test_a_bound_that_is_an_attribute_of_a_function(kind: str, dtype: type[np.floating]) -> None:
    x = np.array([-7, -1, 0, 1, 2.5, 100], dtype)
    expected = [np.clip(x, dtype(-1.5), dtype(2))]
    check(REFERENCE.format(kind=kind), to=12, feeds={"x": x}, expected=expected, variants=["plain"])


def test_a_bound_that_is_an_attribute_of_a_function_needs_opset_12() -> None:
    refuses("needs-value", lift, model(REFERENCE.format(kind="float")), 11)


TWO_CALLS = """10 (float[3] x, double[3] z) => (float[3] y, double[3] w)
    { y = local.Bounded (x) w = local.Bounded (z) }
    <opset_import: ["": 10], domain: "local"> Bounded (a) => (b) { b = Clip <min = -1.5, max = 2.0> (a) }"""


def test_a_function_that_is_called_with_two_types() -> None:
    """The element type differs by call, so the bound is cast at run time by CastLike, which came with opset 15."""
    feeds = {"x": np.array([-3, 1, 9], np.float32), "z": np.array([-3, 1, 9], np.float64)}
    result, _ = lift(TWO_CALLS, 15)
    y, w = run(result, feeds)
    assert (y.dtype, w.dtype) == (np.float32, np.float64)
    np.testing.assert_array_equal(y, [-1.5, 1, 2])
    np.testing.assert_array_equal(w, [-1.5, 1, 2])
    refuses("needs-type", lift, TWO_CALLS, 14)
