"""Operators of which ONNX Runtime has no kernel for a processor: what is written for them, against NumPy."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnx_migrate.engine.pass_registry import make_pass
from onnx_migrate.model.model import Model
from onnx_migrate.rewrite.change_log import ChangeLog
from tests.harness import run

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(0)


def draw(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def erf_gelu(x: Array) -> Array:
    from math import erf

    return x * 0.5 * (1 + np.vectorize(erf)(x / sqrt(2)))


def tanh_gelu(x: Array) -> Array:
    return x * 0.5 * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def group_norm(x: Array, gamma: Array, beta: Array, groups: int, silu: bool) -> Array:
    n, h, w, c = x.shape
    grouped = x.reshape(n, h * w, groups, c // groups)
    mean, var = (getattr(np, name)(grouped, axis=(1, 3), keepdims=True) for name in ("mean", "var"))
    found = ((grouped - mean) / np.sqrt(var + 1e-5)).reshape(x.shape) * gamma + beta
    return found / (1 + np.exp(-found)) if silu else found


def gated(x: Array, bias: Array) -> Array:
    left, right = np.split(x + bias, 2, axis=-1)
    return left * erf_gelu(right)


X, BIAS, WIDE = draw(2, 3, 8), draw(8), draw(2, 3, 8)
IMAGE, GAMMA, BETA, W, SKIP = draw(2, 4, 4, 8), draw(8), draw(8), draw(8, 6), draw(2, 8)

CASES = {
    "BiasSplitGelu": ((X, BIAS), {}, gated(X, BIAS)),
    "BiasAdd": ((X, BIAS, WIDE), {}, X + BIAS + WIDE),
    "BiasSoftmax": ((X, WIDE), {"axis": 2, "is_inner_broadcast": 0}, softmax(X + WIDE)),
    "GroupNorm": (
        (IMAGE, GAMMA, BETA),
        {"groups": 4, "activation": 0, "channels_last": 1, "epsilon": 1e-5},
        group_norm(IMAGE, GAMMA, BETA, 4, silu=False),
    ),
    "GroupNorm with Swish": (
        (IMAGE, GAMMA, BETA),
        {"groups": 2, "activation": 1, "channels_last": 1, "epsilon": 1e-5},
        group_norm(IMAGE, GAMMA, BETA, 2, silu=True),
    ),
    "SkipGroupNorm": (
        (IMAGE, GAMMA, BETA, IMAGE * 2, GAMMA),
        {"groups": 4, "activation": 0},
        group_norm(IMAGE * 3 + GAMMA, GAMMA, BETA, 4, silu=False),
    ),
    "SkipGroupNorm by channel": (
        (IMAGE, GAMMA, BETA, SKIP),
        {"groups": 2, "activation": 1},
        group_norm(IMAGE + SKIP[:, None, None], GAMMA, BETA, 2, silu=True),
    ),
    "GemmFastGelu": ((X, W, BETA[:6]), {}, tanh_gelu(X @ W + BETA[:6])),
}


@pytest.mark.parametrize("opset", [13, 20])
@pytest.mark.parametrize("name", CASES)
def test_what_is_written_computes_the_text(name: str, opset: int) -> None:
    inputs, attributes, expected = CASES[name]
    names = [f"i{place}" for place in range(len(inputs))]
    node = helper.make_node(name.split()[0], names, ["y"], domain="com.microsoft", **attributes)
    given = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
        for name, array in zip(names, inputs, strict=True)
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, expected.shape)
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    source = helper.make_model(
        helper.make_graph([node], "g", given, [output]), opset_imports=imports, ir_version=8
    )

    result = make_pass("standard").run(Model(source), ChangeLog()).proto

    assert all(item.domain == "" for item in result.graph.node)
    onnx.checker.check_model(result, full_check=True)
    (found,) = run(result, dict(zip(names, inputs, strict=True)))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
