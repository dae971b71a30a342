"""BatchNormalization below 15 and 14: mixed types and training mode."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lowering import check_down, lower

KINDS = {"float": np.float32, "double": np.float64, "float16": np.float16}


def feeds(data: str = "float", scale: str = "float", statistics: str = "float") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    values = {"x": rng.standard_normal((2, 3, 4)).astype(KINDS[data])}
    values |= {name: rng.standard_normal(3).astype(KINDS[scale]) for name in "sb"}
    return values | {name: (rng.random(3) + 0.5).astype(KINDS[statistics]) for name in "mv"}


def text(
    opset: int,
    attributes: str,
    outputs: str = "y",
    data: str = "float",
    scale: str = "float",
    statistics: str = "float",
) -> str:
    types = {"y": data, "p": statistics, "q": statistics}
    declared = ", ".join(f"{types[name]}[] {name}" for name in outputs.split(", ") if name)
    return f"""<ir_version: 8, opset_import: ["": {opset}]> graph ({data}[2, 3, 4] x, {scale}[3] s, {scale}[3] b,
        {statistics}[3] m, {statistics}[3] v) => ({declared})
        {{ {outputs} = BatchNormalization <epsilon = 0.01, {attributes}> (x, s, b, m, v) }}"""


@pytest.mark.parametrize("opset", [14, 15])
@pytest.mark.parametrize("mode", ["momentum = 0.7", "training_mode = 0"])
def test_inference(opset: int, mode: str) -> None:
    check_down(text(opset, mode), 13, 9, 7, feeds=feeds())
    check_down(text(opset, mode, data="double", scale="double", statistics="double"), 13,
        feeds=feeds("double", "double", "double"))  # fmt: skip


@pytest.mark.parametrize("opset", [14, 15])
@pytest.mark.parametrize("outputs", ["y, p, q", "y"])
def test_training(opset: int, outputs: str) -> None:
    """ONNX Runtime loads no version 14 with one output: onnx.reference rounds otherwise."""
    rtol = 2e-6 if outputs == "y" else 0.0
    check_down(text(opset, "training_mode = 1, momentum = 0.8", outputs), 13, 9, 7, feeds=feeds(), rtol=rtol)


@pytest.mark.parametrize(
    ("data", "scale", "statistics"),
    [
        ("float", "float16", "float"),
        ("float", "float", "double"),
        ("float16", "float", "float"),
        ("double", "float", "float"),
        ("float16", "float16", "float"),
    ],
)
def test_mixed_types(data: str, scale: str, statistics: str) -> None:
    """No runtime has kernels for these: NumPy computes the numbers."""
    given = feeds(data, scale, statistics)
    x, s, b, m, v = (value.astype(np.float64) for value in given.values())
    column = (slice(None), None)
    y = (x - m[column]) / np.sqrt(v[column] + 0.01) * s[column] + b[column]
    rtol = 2e-3 if "float16" in data else 1e-5
    expected = [y.astype(KINDS[data])]
    check_down(text(15, "momentum = 0.7", "y", data, scale, statistics), 14 if statistics == data else 13, 13,
        feeds=given, expected=expected, rtol=rtol, atol=rtol)  # fmt: skip


def test_unknown_types_are_assumed_to_be_one() -> None:
    source = """<ir_version: 8, opset_import: ["": 15, "other": 1]> graph (float[2, 3, 4] x, float[3] s) => (float[] y)
        { z = other.Custom (x)  y = BatchNormalization (z, s, s, s, s) }"""
    assert [change.exactness.value for change in lower(source, 13)[1].changes] == ["assumed"]
