from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnx_migrate.errors import CannotMigrate
from tests.harness import check, lift, model, run

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
    return f"""<ir_version: 3, opset_import: ["": {opset}]> g (float[4,3,2,5] x, {PARAMETERS.format(shape)})
        => ({declared})
        {{ {outputs} = BatchNormalization {written} (x, s, b, m, v) }}"""


@pytest.mark.parametrize("attributes", ["", "epsilon = 0.01", "spatial = 1, momentum = 0.5"])
def test_inference(attributes: str) -> None:
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
    with pytest.raises(CannotMigrate) as caught:
        lift(model(_source(6, "is_test = 1", outputs="y, mean")), 7)
    assert caught.value.code == "no-equal"


@pytest.mark.parametrize(("shape", "dims"), [((3, 2, 5), "3,2,5"), ((30,), "30")])
def test_per_activation(shape: tuple[int, ...], dims: str) -> None:
    if len(shape) == 3:
        check(_source(7, "spatial = 0, epsilon = 0.25", dims), to=9, feeds=_feeds(shape))
    else:  # Opset 6 had the parameters in one dimension.
        feeds = _feeds(shape)
        s, b, m, v = (feeds[name].reshape(3, 2, 5) for name in "sbmv")
        expected = [s * (X - m) / np.sqrt(v + np.float32(1e-5)) + b]
        check(
            _source(6, "spatial = 0, is_test = 1", dims),
            to=9,
            feeds=feeds,
            expected=expected,
            rtol=1e-4,
            atol=1e-5,
        )


@pytest.mark.parametrize("opset", [7, 9])
@pytest.mark.parametrize("outputs", ["y, rm, rv, no3, no4", "y, rm, no2, no3, no4", "y, no1, no2, no3, no4"])
def test_training(opset: int, outputs: str) -> None:
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
    with pytest.raises(CannotMigrate) as caught:
        lift(model(source), 14)
    assert caught.value.code == "no-equal"
    check(source, to=13, newest=13, feeds=_feeds((3,)))
