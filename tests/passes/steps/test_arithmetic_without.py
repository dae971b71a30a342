"""Arithmetic and logic written out compute the same, bit for bit unless a tolerance stands here."""

from __future__ import annotations

import numpy as np
import pytest

from tests.written_out import at, check_written_out


def source(call: str, opset: int, kind: str = "float", result: str = "") -> str:
    inputs = f"{kind}[2,3] a, {kind}[2,3] b, {kind}[3] c"
    return at(opset, f"g ({inputs}) => ({result or kind}[2,3] y) {{ y = {call} }}")


@pytest.mark.parametrize("opset", [8, 13])
@pytest.mark.parametrize(
    ("operator", "inputs", "tolerance"),
    [
        ("Sum", "a, b, c", 0.0),
        ("Sum", "a", 0.0),
        ("Mean", "a, b, c", 1e-6),
        ("Mean", "a", 0.0),
        ("Max", "a, b, c", 0.0),
        ("Max", "a", 0.0),
        ("Min", "a, b", 0.0),
        ("Neg", "a", 0.0),
        ("Sub", "a, c", 0.0),
        ("Reciprocal", "a", 0.0),
        ("Ceil", "a", 0.0),
        ("Floor", "a", 0.0),
        ("Tan", "a", 1e-5),
    ],
)
def test_floats(operator: str, inputs: str, tolerance: float, opset: int) -> None:
    check_written_out(
        source(f"{operator} ({inputs})", opset), operator, variants=["plain", "symbolic", "if", "function"],
        rtol=tolerance, atol=tolerance,
    )  # fmt: skip


@pytest.mark.parametrize("operator", ["Abs", "Sinh", "Cosh"])
def test_functions_of_floats(operator: str) -> None:
    check_written_out(source(f"{operator} (a)", 13), operator, rtol=0 if operator == "Abs" else 1e-5, atol=0)


def test_a_root_is_a_power() -> None:
    text = at(13, "g (float[2,3] a) => (float[2,3] y) { s = Mul (a, a) y = Sqrt (s) }")
    check_written_out(text, "Sqrt", rtol=1e-6)


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_integers(kind: str) -> None:
    for operator, inputs in (("Sub", "a, b"), ("Neg", "a"), ("Abs", "a"), ("Max", "a, b")):
        check_written_out(source(f"{operator} ({inputs})", 13, kind), operator, variants=["plain"])


@pytest.mark.parametrize("operator", ["And", "Or", "Xor"])
@pytest.mark.parametrize("opset", [7, 13])
def test_logic(operator: str, opset: int) -> None:
    check_written_out(source(f"{operator} (a, b)", opset, "bool"), operator)


def test_not() -> None:
    check_written_out(source("Not (a)", 13, "bool"), "Not")


def test_operators_that_are_written_by_each_other() -> None:
    check_written_out(source("Or (a, b)", 13, "bool"), "Or", "And")


@pytest.mark.parametrize("operator", ["Less", "Greater"])
def test_order(operator: str) -> None:
    check_written_out(source(f"{operator} (a, b)", 13, result="bool"), operator, specials=True)


def test_a_circle_is_refused() -> None:
    check_written_out(
        source("Less (a, b)", 13, result="bool"), "Less", "Greater", variants=["plain"], refused={"plain": "target-lacks"}
    )  # fmt: skip


def test_limits() -> None:
    for call in ("Clip <min = -1.0, max = 2.0> (a)", "Clip <min = -1.0> (a)"):
        check_written_out(source(call, 10), "Clip", specials=True)
    text = at(13, "g (float[2,3] a, float l, float h) => (float[2,3] y) { y = Clip (a, l, h) }")
    check_written_out(text, "Clip", variants=["plain", "unranked", "function"])


def test_the_place_of_the_minimum() -> None:
    text = at(13, "g (float[2,5] a) => (int64[2,1] y) { y = ArgMin <axis = 1> (a) }")
    check_written_out(text, "ArgMin")
    ints = text.replace("float[2,5]", "int32[2,5]")
    check_written_out(ints, "ArgMin", variants=["plain"], refused={"plain": "no-equal"})


@pytest.mark.parametrize(
    ("operator", "low", "high"), [("Asinh", -3, 3), ("Acosh", 1, 5), ("Atanh", -0.95, 0.95)]
)
def test_inverse_functions(operator: str, low: float, high: float) -> None:
    x = np.linspace(low, high, 6, dtype=np.float32).reshape(2, 3)
    feeds = {"a": x, "b": x, "c": x[0]}
    check_written_out(source(f"{operator} (a)", 13), operator, feeds=feeds, rtol=1e-5, atol=1e-6)


def test_quotients_are_products() -> None:
    constant = at(13, "g (float[2,3] x) => (float[2,3] y) <float[3] w = {3.0, -7.0, 0.1}> { y = Div (x, w) }")
    result = check_written_out(constant, "Div", rtol=1e-6)
    assert [node.op_type for node in result.graph.node] == ["Mul"]
    check_written_out(source("Div (a, b)", 13), "Div", rtol=1e-6)
    ones = {name: np.ones(shape, np.int32) for name, shape in (("a", (2, 3)), ("b", (2, 3)), ("c", (3,)))}
    integers = source("Div (a, b)", 13, "int32")
    check_written_out(integers, "Div", variants=["plain"], refused={"plain": "no-equal"}, feeds=ones)
