"""Erf-13: integers are cast to float32 and back; nodes on floats are unchanged."""

from __future__ import annotations

import numpy as np
import pytest

from tests.harness import ONNX_NEWEST, SUPPORTED, check

HEAD = '<ir_version: 8, opset_import: ["": 9]> erf '


@pytest.mark.parametrize("kind", ["float", "double", "float16"])
def test_nodes_on_floats_are_unchanged(kind: str) -> None:
    result = check(f"{HEAD}({kind}[9] x) => ({kind}[9] y) {{ y = Erf (x) }}", to=13)
    assert [node.op_type for node in result.graph.node] == ["Erf"]


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_integers(kind: str) -> None:
    # The reference evaluator of an older onnx computes in float64, in which erf(4) and erf(5) are below 1.
    values = np.array([0, 1, 2, 3, 100] if ONNX_NEWEST < SUPPORTED else [0, 1, 2, 3, 4, 5, 100], kind)
    feeds = {"x": values if kind.startswith("u") else np.concatenate([values, -values])}
    # By onnx.reference: ONNX Runtime has Erf for floats only.
    result = check(f"{HEAD}({kind}[N] x) => ({kind}[N] y) {{ y = Erf (x) }}", to=13, feeds=feeds)
    assert [node.op_type for node in result.graph.node] == ["Cast", "Erf", "Cast"]
