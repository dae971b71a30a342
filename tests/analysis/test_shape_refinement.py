"""Shapes that follow from known values, seen by lowerings that need a rank."""

from __future__ import annotations

import pytest

from tests.lowering import check_down


@pytest.mark.parametrize(
    "reshape",
    [
        "s = Shape (x)  y = Reshape (x, s)",
        "s = Shape (x)  t = Concat <axis = 0> (s, one)  y = Reshape (x, t)",
        "s = Shape (x)  y = Expand (r, s)",
        "s = Shape (x)  t = Gather (s, zero)  u = Concat <axis = 0> (t, minus)  y = Reshape (x, u)",
    ],
)
def test_a_rank_that_onnx_does_not_infer(reshape: str) -> None:
    source = f"""<ir_version: 7, opset_import: ["": 13]> graph (float[N, 3] x, float[3] r) => (float[] z)
        <int64[1] one = {{1}}, int64[1] zero = {{0}}, int64[1] minus = {{-1}}> {{
        u0 = Identity (r)  {reshape}  w = Relu (y)  z = Softmax <axis = 0> (w) }}"""
    check_down(source, 12, variants=("plain", "symbolic", "if", "function"))
