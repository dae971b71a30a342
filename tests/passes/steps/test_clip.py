"""Clip, Max and Min of every type, with known, missing and run-time bounds, up and down."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.harness import FLOATS, INTEGERS, dtype_of, loads, run
from tests.steps import check, check_down, element_wise, lift, lower, refuses, special_values

NUMBERS = [*FLOATS, *INTEGERS]


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("bounds", [", low, high", ", low", ", , high", ""])
def test_constant_bounds(dtype: str, bounds: str) -> None:
    used = [name for name in ("low", "high") if name in bounds]
    values = {"low": "1.5", "high": "2.5"} if dtype in FLOATS else {"low": "2", "high": "5"}
    plain, suffix = (
        ("float", "_wide") if dtype == "float16" else (dtype, "")
    )  # onnx's parser reads no float16
    constants = ", ".join(f"{plain} {name}{suffix} = {{{values[name]}}}" for name in used)
    casts = " ".join(f"{name} = Cast <to = 10> ({name}_wide)" for name in used if suffix)
    x = special_values(dtype_of(dtype))
    source = f"""13 ({dtype}[{len(x)}] x) => ({dtype}[{len(x)}] y) {f"<{constants}>" if used else ""}
        {{ {casts} y = Clip (x{bounds}) }}"""
    check_down(source, 12, 11, 10, 9, 8, feeds={"x": x}, variants=("plain",))
    check_down(source, 10, 8 if dtype == "double" else 7, feeds={"x": x})


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("bounds", ["low, high", "low", ", high"])
@pytest.mark.parametrize(("low", "high"), [(1, 3), (3, 1)])
def test_bounds_at_run_time(dtype: str, bounds: str, low: int, high: int) -> None:
    feeds = {"x": special_values(dtype_of(dtype))}
    feeds |= {
        name: np.array(value, dtype_of(dtype))
        for name, value in (("low", low), ("high", high))
        if name in bounds
    }
    source = element_wise(13, f"Clip (x, {bounds})", feeds)
    check_down(source, 12, 11, 10, 8, feeds=feeds, variants=("plain", "unranked", "if"))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_lower_bound_above_the_upper_one(dtype: str) -> None:
    """ONNX Runtime refuses such bounds in attributes; from opset 12 on, all is the upper one."""
    kind, feeds = helper.np_dtype_to_tensor_dtype(dtype_of(dtype)), {"x": special_values(dtype_of(dtype))}
    source = f"""13 ({dtype}[N] x) => ({dtype}[N] y) <int64 five = {{5}}, int64 two = {{2}}> {{
        low = Cast <to = {kind}> (five) high = Cast <to = {kind}> (two) y = Clip (x, low, high) }}"""
    check_down(source, 11, 10, 8, feeds=feeds, variants=("plain", "if"))
    assert loads(lower(source, 10)[0])


def test_a_bound_that_float32_does_not_hold() -> None:
    source = "12 (double[3] x) => (double[3] y) <double low = {0.1}> { y = Clip (x, low) }"
    check_down(source, 10, feeds={"x": np.array([0.05, 0.1, 0.2])})


def test_a_bound_that_can_be_overridden_stays_an_input() -> None:
    source = "11 (float[3] x, float low = {0.5}) => (float[3] y) { y = Clip (x, low) }"
    feeds = {"x": np.array([-1, 1, 3], np.float32), "low": np.array(2, np.float32)}
    check_down(source, 10, feeds=feeds, variants=("plain",))


@pytest.mark.parametrize(("operator", "function"), [("Max", np.maximum), ("Min", np.minimum)])
@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("given", ["a, b", "a", "a, b, a"])
def test_max_and_min(operator: str, function: np.ufunc, dtype: str, given: str) -> None:
    pool = special_values(dtype_of(dtype))
    feeds = {"a": pool[:, None], "b": pool[None, :]}
    n, many = len(pool), given != "a"
    result = f"{dtype}[{n},{n if many else 1}]"
    source = f"13 ({dtype}[{n},1] a, {dtype}[1,{n}] b) => ({result} y) {{ y = {operator} ({given}) }}"
    expected = None
    if dtype in ("int16", "uint16"):  # ONNX Runtime has no kernel
        expected = [function(*feeds.values()) if many else feeds["a"]]
    # The kernels of float16 of version 13 and 8 differ in the sign of Max(0, -0).
    atol, variants = 1e-30 if dtype == "float16" else 0, ("plain", "symbolic", "unranked", "if")
    check_down(source, 12, 11, 8, feeds=feeds, expected=expected, atol=atol, variants=variants)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_max_of_integers_at_7(dtype: str) -> None:
    feeds = {"a": np.array([3, 1, 5], dtype), "b": np.array([2, 2, 5], dtype)}
    source, expected = element_wise(13, "Max (a, b)", feeds), [np.array([3, 2, 5], dtype)]
    check_down(source, 7, variants=("plain",), expected=expected, feeds=feeds)


@pytest.mark.parametrize("dtype", ["float", "int64", "int32"])
def test_empty_tensors(dtype: str) -> None:
    kind = f"{dtype}[0]"
    source = f"13 ({kind} x, {dtype} low) => ({kind} y, {kind} z) {{ y = Clip (x, low) z = Max (x, low) }}"
    check_down(source, 10, variants=("plain",))


def test_an_input_that_is_left_out_at_the_end_stays_where_nothing_changes() -> None:
    lowered, log = lower('12 (float[2] x, float low) => (float[2] y) { y = Clip (x, low, "") }', 11)
    assert list(lowered.graph.node[0].input) == ["x", "low", ""]
    assert not log.changes


# Upward: attributes become inputs

EDGES = np.array([-np.inf, -3e38, -7, -1, -0.0, 0, 0.5, 6.5, 3e38, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    ("attributes", "opset"),
    [
        *(
            (f"<{text}>", opset)
            for text in ("min = 0.0, max = 6.0", "min = -1.0", "max = 0.5")
            for opset in (6, 10)
        ),
        *((text, opset) for text in ("", "<min = 2.0, max = -2.0>") for opset in (6, 10)),
        ("<min = -3.4028234663852886e+38, max = 3.4028234663852886e+38>", 10),
    ],
)
def test_float(attributes: str, opset: int) -> None:
    source = f"{opset} ir5 (float[11] x) => (float[11] y) {{ y = Clip {attributes} (x) }}"
    result = check(source, to=11, feeds={"x": EDGES})
    assert not result.graph.node[0].attribute


@pytest.mark.parametrize("kind", ["double", "float16"])
def test_bounds_have_the_data_type(kind: str) -> None:
    """ONNX Runtime's Clip-6 supports float only: the expected bounds are the attributes, rounded to the type."""
    dtype = dtype_of(kind).type
    x = np.array([-7, -1, 0.1, 0.25, 6.5, 100], dtype)
    expected = [np.minimum(np.maximum(x, dtype(np.float32(0.1))), dtype(6))]
    source = f"10 ({kind}[6] x) => ({kind}[6] y) {{ y = Clip <min = 0.1, max = 6.0> (x) }}"
    check(source, to=12, feeds={"x": x}, expected=expected)


def test_a_bound_beyond_the_range_of_float16_clips_nothing() -> None:
    x = np.array([-60000, 1, 60000, np.inf], np.float16)
    source = "10 (float16[4] x) => (float16[4] y) { y = Clip <min = 0.0, max = 1e9> (x) }"
    check(source, to=12, feeds={"x": x}, expected=[np.maximum(x, np.float16(0))])


REFERENCE = """10 ({kind}[6] x) => ({kind}[6] y) {{ y = local.Bounded <low = -1.5> (x) }}
    <opset_import: ["": 10], domain: "local"> Bounded <low> (a) => (b)
    {{ b = Clip <min: float = @low, max = 2.0> (a) }}"""


@pytest.mark.parametrize("kind", FLOATS)
def test_a_bound_that_is_an_attribute_of_a_function(kind: str) -> None:
    x = np.array([-7, -1, 0, 1, 2.5, 100], dtype_of(kind))
    expected = [np.clip(x, x.dtype.type(-1.5), x.dtype.type(2))]
    check(REFERENCE.format(kind=kind), to=12, feeds={"x": x}, expected=expected, variants=["plain"])


def test_a_bound_that_is_an_attribute_of_a_function_needs_opset_12() -> None:
    refuses("needs-value", lift, REFERENCE.format(kind="float"), 11)


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
