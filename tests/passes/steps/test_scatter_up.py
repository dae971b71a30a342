"""Scatter becomes ScatterElements; ScatterElements and ScatterND are unchanged."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser

from tests.harness import check, lift, run

FEEDS = {
    "x": np.arange(12, dtype=np.float32).reshape(3, 4),
    "i": np.array([[2, 0, 1], [1, 2, 0]]),
    "u": -np.ones((2, 3), np.float32) * np.arange(1, 4, dtype=np.float32),
}


@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2])
@pytest.mark.parametrize(("operator", "opset"), [("Scatter", 9), ("Scatter", 10), ("ScatterElements", 11)])
@pytest.mark.parametrize("indices", ["int32", "int64"])
def test_elements(operator: str, opset: int, axis: int | None, indices: str) -> None:
    attribute = "" if axis is None else f"<axis = {axis}>"
    source = f"""<ir_version: 4, opset_import: ["": {opset}]>
        graph (float[3, 4] x, {indices}[2, 3] i, float[2, 3] u) => (float[3, 4] y)
        {{ y = {operator} {attribute} (x, i, u) }}"""
    result = check(source, to=max(opset + 1, 11), feeds={**FEEDS, "i": FEEDS["i"].astype(indices)})
    assert [node.op_type for node in result.graph.node] == ["ScatterElements"]


@pytest.mark.parametrize("target", [12, 13, 26])
def test_a_scatter_of_the_opset_that_withdrew_it(target: int) -> None:
    """Some exporters wrote it at opset 11; the expected values are those of opset 10."""
    texts = (
        f"""<ir_version: 5, opset_import: ["": {opset}]>
        graph (float[3, 4] x, int64[2, 3] i, float[2, 3] u)
            => (float[3, 4] y) {{ y = Scatter <axis = 1> (x, i, u) }}"""
        for opset in (10, 11)
    )
    known, source = map(parser.parse_model, texts)
    result, _ = lift(source, target)
    np.testing.assert_array_equal(run(result, FEEDS)[0], run(known, FEEDS)[0])


def test_nd() -> None:
    source = """<ir_version: 6, opset_import: ["": 11]>
        graph (float[3, 4] x, int64[2, 1] i, float[2, 4] u) => (float[3, 4] y) { y = ScatterND (x, i, u) }"""
    feeds = {"x": FEEDS["x"], "i": np.array([[2], [0]]), "u": -np.ones((2, 4), np.float32)}
    check(source, to=18, feeds=feeds)


@pytest.mark.parametrize("reduction", ["none", "add", "mul"])
def test_reductions_of_16(reduction: str) -> None:
    source = f"""<ir_version: 8, opset_import: ["": 16]>
        graph (float[3, 4] x, int64[2, 3] i, float[2, 3] u) => (float[3, 4] y, float[3, 4] z) {{
            y = ScatterElements <reduction = "{reduction}"> (x, i, u)
            n = Constant <value = int64[2, 1] {{2, 1}}> ()
            v = Constant <value = float[2, 4] {{1, 2, 3, 4, 5, 6, 7, 8}}> ()
            z = ScatterND <reduction = "{reduction}"> (x, n, v)
        }}"""
    check(source, to=18, feeds=FEEDS)
