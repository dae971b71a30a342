"""The element-wise operators of opset 1, compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.harness import check

X = np.array([[-2.5, -1, 0.5], [0, 3, 1.25]], np.float32)
Y = np.array([[0.5, 2, -1], [4, -0.25, 1.25]], np.float32)

UNARY: dict[str, Callable[[Any], Any]] = {
    "Abs": np.abs,
    "Ceil": np.ceil,
    "Elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "Exp": np.exp,
    "Floor": np.floor,
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "LeakyRelu": lambda x: np.where(x < 0, 0.01 * x, x),
    "Log": np.log,
    "Neg": np.negative,
    "Reciprocal": np.reciprocal,
    "Relu": lambda x: np.maximum(x, 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "Sqrt": np.sqrt,
    "Tanh": np.tanh,
}


@pytest.mark.parametrize("operator", UNARY)
def test_unary(operator: str) -> None:
    x = np.abs(X) + np.float32(0.25) if operator in ("Log", "Sqrt", "Reciprocal") else X
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[2,3] x) => (float[2,3] y)
        {{ y = {operator} <consumed_inputs = [0]> (x) }}"""
    check(
        source, to=7, feeds={"x": x}, expected=[UNARY[operator](x).astype(np.float32)], rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize(
    ("operator", "function"), [("Max", np.maximum), ("Min", np.minimum), ("Sum", np.add)]
)
def test_variadic(operator: str, function: Callable[[Any, Any], Any]) -> None:
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[2,3] a, float[2,3] b) => (float[2,3] y)
        {{ y = {operator} <consumed_inputs = [0, 0]> (a, b) }}"""
    check(source, to=8, feeds={"a": X, "b": Y}, expected=[function(X, Y)])


def test_mean() -> None:
    source = """<ir_version: 3, opset_import: ["": 1]> g (float[2,3] a, float[2,3] b) => (float[2,3] y)
        { y = Mean <consumed_inputs = [0, 0]> (a, b) }"""
    check(source, to=8, feeds={"a": X, "b": Y}, expected=[(X + Y) / 2])


@pytest.mark.parametrize(
    ("attributes", "alpha", "gamma"),
    [("", 1.6732, 1.0507), (", alpha = 2.0", 2.0, 1.0507), (", alpha = 1.5, gamma = 3.0", 1.5, 3.0)],
)
def test_selu(attributes: str, alpha: float, gamma: float) -> None:
    source = f"""<ir_version: 3, opset_import: ["": 1]> g (float[2,3] x) => (float[2,3] y)
        {{ y = Selu <consumed_inputs = [0]{attributes}> (x) }}"""
    expected = np.where(X <= 0, gamma * alpha * np.expm1(X), gamma * X).astype(np.float32)
    # The defaults of versions 1 and 6 are 4e-5 apart.
    result = check(source, to=6, feeds={"x": X}, expected=[expected], rtol=1e-6, atol=1e-7)
    assert [value.f for value in sorted(result.graph.node[0].attribute, key=lambda a: a.name)] == [
        np.float32(alpha),
        np.float32(gamma),
    ]


def test_instance_normalization() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2) ** 2
    scale, bias = np.array([1, 2, 3], np.float32), np.array([0, -1, 1], np.float32)
    source = """<ir_version: 3, opset_import: ["": 1]>
        g (float[2,3,2,2] x, float[3] s, float[3] b) => (float[2,3,2,2] y)
        { y = InstanceNormalization <consumed_inputs = [0, 0, 0], epsilon = 0.5> (x, s, b) }"""
    mean, variance = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    expected = scale[:, None, None] * (x - mean) / np.sqrt(variance + 0.5) + bias[:, None, None]
    feeds = {"x": x, "s": scale, "b": bias}
    check(source, to=6, feeds=feeds, expected=[expected.astype(np.float32)], rtol=1e-5, atol=1e-5)
