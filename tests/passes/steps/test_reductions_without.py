"""Reductions, global pools and norms written out compute the same in all forms of their axes."""

from __future__ import annotations

import pytest

from tests.harness import random_feeds
from tests.written_out import at, check_written_out

OPERATORS = ["ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceMean", "ReduceLogSum"]


def source(operator: str, opset: int, axes: list[int] | None, keepdims: int) -> str:
    given = f"keepdims = {keepdims}" + (f", axes = {axes}" if axes and opset < 18 else "")
    weights = f"<int64[{len(axes)}] a = {{{', '.join(map(str, axes))}}}>" if axes and opset >= 18 else ""
    inputs = "x, a" if weights else "x"
    return f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[2,3,4] x) => (float y) {weights}
    {{ y = {operator} <{given}> ({inputs}) }}"""


@pytest.mark.parametrize("opset", [7, 13, 18])
@pytest.mark.parametrize("axes", [[1], [0, 2], None])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_reduction(operator: str, keepdims: int, axes: list[int] | None, opset: int) -> None:
    from tests.harness import model

    proto = model(source(operator, opset, axes, keepdims))
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = {name: abs(value) + 0.1 for name, value in random_feeds(proto).items()}
    variants = ["plain"] if operator == "ReduceMean" else ["plain", "symbolic", "if", "function"]
    check_written_out(
        proto,
        operator,
        feeds={name: value.astype("float32") for name, value in feeds.items()},
        variants=variants,
        rtol=1e-6,
        atol=1e-6,
    )


def test_what_a_mean_must_know_is_refused() -> None:
    check_written_out(
        at(13, "g (float[2,3] x) => (float[2,1] y) { y = ReduceMean <axes = [1]> (x) }"),
        "ReduceMean",
        refused={"symbolic": "needs-shape", "unranked": "needs-shape"},
        rtol=1e-6,
    )


@pytest.mark.parametrize("opset", [7, 13, 22])
@pytest.mark.parametrize(
    ("operator", "attributes"),
    [
        ("GlobalAveragePool", ""),
        ("GlobalMaxPool", ""),
        ("GlobalLpPool", ""),
        ("GlobalLpPool", "<p = 1>"),
        ("GlobalLpPool", "<p = 3>"),
    ],
)
def test_a_global_pool(operator: str, attributes: str, opset: int) -> None:
    if operator == "GlobalLpPool" and opset == 22:
        pytest.skip("ONNX Runtime has no kernel of GlobalLpPool-22")
    check_written_out(
        at(opset, f"g (float[2,3,4,5] x) => (float[2,3,1,1] y) {{ y = {operator} {attributes} (x) }}"),
        operator,
        refused={"unranked": "needs-rank"},
        rtol=1e-6,
        atol=1e-6,
    )


@pytest.mark.parametrize("attributes", ["", "<p = 1>", "<axis = 1>", "<axis = 0, p = 2>"])
def test_a_norm(attributes: str) -> None:
    import numpy as np

    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    x[0, 1] = x[:, 2, 1] = 0  # norms of 0
    check_written_out(
        at(13, f"g (float[2,3,4] x) => (float[2,3,4] y) {{ y = LpNormalization {attributes} (x) }}"),
        "LpNormalization",
        feeds={"x": x},
        rtol=1e-6,
        atol=1e-7,
    )
