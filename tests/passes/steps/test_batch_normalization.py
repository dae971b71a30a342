"""BatchNormalization up and down: inference, training, per activation, and mixed types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.harness import model, run
from tests.steps import check, check_down, lift, lower, refuses

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
    return f"""{opset} ({data}[2, 3, 4] x, {scale}[3] s, {scale}[3] b,
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


RNG = np.random.default_rng(2)
X = RNG.standard_normal((4, 3, 2, 5)).astype(np.float32)
PARAMETERS = "float[{0}] s, float[{0}] b, float[{0}] m, float[{0}] v"


def _feeds(shape: tuple[int, ...]) -> dict[str, Any]:
    s, b, m, v = (RNG.random(shape).astype(np.float32) + np.float32(0.5) for _ in range(4))
    return {"x": X, "s": s, "b": b, "m": m, "v": v}


def _source(opset: int, attributes: str = "", shape: str = "3", outputs: str = "y") -> str:
    names = outputs.split(", ")
    declared = ", ".join(
        ["float[4,3,2,5] y", *(f"float[{shape}] {name}" for name in names[1:] if not name.startswith("no"))]
    )
    written = f"<{attributes}>" if attributes else ""
    return f"""{opset} ir3 (float[4,3,2,5] x, {PARAMETERS.format(shape)}) => ({declared})
        {{ {outputs} = BatchNormalization {written} (x, s, b, m, v) }}"""


@pytest.mark.parametrize("attributes", ["", "epsilon = 0.01", "spatial = 1, momentum = 0.5"])
def test_inference_up(attributes: str) -> None:
    source = _source(7, attributes)
    check(source, to=9, feeds=_feeds((3,)))
    check(source, to=14, feeds=_feeds((3,)), variants=["plain"])


@pytest.mark.parametrize(
    ("opset", "attributes"),
    [(1, "consumed_inputs = [0,0,0,1,1], is_test = 1"), (6, "is_test = 1, epsilon = 0.25"), (6, "")],
)
@pytest.mark.parametrize("outputs", ["y", "y, no1, no2, no3, no4"])
def test_older_than_7(opset: int, attributes: str, outputs: str) -> None:
    if not attributes and outputs != "y":
        return  # Training; see below.
    feeds = _feeds((3,))
    s, b, m, v = (feeds[name][:, None, None] for name in "sbmv")
    expected = s * (X - m) / np.sqrt(v + np.float32(0.25 if "0.25" in attributes else 1e-5)) + b
    source = _source(opset, attributes, outputs=outputs)
    result = check(source, to=7, feeds=feeds, expected=[expected], rtol=1e-4, atol=1e-5)
    assert len(result.graph.node[0].output) == 1


def test_an_output_that_is_not_computed_in_test_mode_is_refused_if_it_is_read() -> None:
    refuses("no-equal", lift, _source(6, "is_test = 1", outputs="y, mean"), 7)


@pytest.mark.parametrize(("shape", "dims"), [((3, 2, 5), "3,2,5"), ((30,), "30")])
def test_per_activation(shape: tuple[int, ...], dims: str) -> None:
    if len(shape) == 3:
        check(_source(7, "spatial = 0, epsilon = 0.25", dims), to=9, feeds=_feeds(shape))
    else:  # Opset 6 had the parameters in one dimension.
        feeds = _feeds(shape)
        s, b, m, v = (feeds[name].reshape(3, 2, 5) for name in "sbmv")
        expected = [s * (X - m) / np.sqrt(v + np.float32(1e-5)) + b]
        source = _source(6, "spatial = 0, is_test = 1", dims)
        check(source, to=9, feeds=feeds, expected=expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("outputs", ["y, rm, rv, no3, no4", "y, rm, no2, no3, no4", "y, no1, no2, no3, no4"])
def test_training_up(opset: int, outputs: str) -> None:
    source = _source(opset, "momentum = 0.75, epsilon = 0.01", outputs=outputs)
    result = check(source, to=14, feeds=_feeds((3,)))
    assert len(result.graph.node[0].output) <= 3
    assert ("training_mode", 1) in [
        (attribute.name, attribute.i) for attribute in result.graph.node[0].attribute
    ]


def test_training_of_version_6() -> None:
    source = _source(6, "momentum = 0.75", outputs="y, rm, rv, no3, no4")
    same = _source(7, "momentum = 0.75", outputs="y, rm, rv, no3, no4")
    feeds = _feeds((3,))
    check(source, to=7, feeds=feeds, expected=run(model(same), feeds))


def test_training_per_activation() -> None:
    """ONNX Runtime trains with statistics per channel only: the expected values are computed with NumPy."""
    feeds = _feeds((3, 2, 5))
    mean, variance = X.mean(0), X.var(0)
    expected = [
        feeds["s"] * (X - mean) / np.sqrt(variance + np.float32(1e-5)) + feeds["b"],
        feeds["m"] * np.float32(0.75) + mean * np.float32(0.25),
        feeds["v"] * np.float32(0.75) + variance * np.float32(0.25),
    ]
    source = _source(7, "spatial = 0, momentum = 0.75", "3,2,5", "y, rm, rv, no3, no4")
    check(source, to=14, feeds=feeds, expected=expected, rtol=1e-4, atol=1e-5)


def test_a_saved_statistic_that_is_read_is_refused() -> None:
    source = _source(9, outputs="y, rm, rv, sm, sv")
    refuses("no-equal", lift, source, 14)
    check(source, to=13, newest=13, feeds=_feeds((3,)))
