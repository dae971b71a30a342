"""Shapes that follow from known values, seen by lowerings that need a rank."""

from __future__ import annotations

import pytest

from onnx_migrate.analysis.known_values import KnownValues, Producers
from onnx_migrate.analysis.scope import scopes
from onnx_migrate.analysis.shape_refinement import refine_outputs
from onnx_migrate.model.model import Model
from tests.harness import model
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


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("y = Reshape (x, four)", (4, 3)),
        ("y = Reshape (x, copy)", (None, 3)),
        ("y = Reshape (x, fed)", (None, None)),
        ("y = Expand (x, four)", (4, 3)),
        ("y = Expand (x, long)", (5, None, 3)),
        ("y = ConstantOfShape (copy)", (0, 3)),
        ("y = Reshape (x, any)", None),
    ],
)
def test_what_is_known_of_a_shape_is_entered(body: str, expected: tuple[int | None, ...] | None) -> None:
    proto = model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[N,3] x, int64[2] fed, int64[M] any) => (float y)
        <int64[2] four = {{4, 3}}, int64[2] copy = {{0, 3}}, int64[3] long = {{5, 1, 1}}> {{ {body} }}"""
    )
    del proto.graph.output[:]
    scope = next(iter(scopes(proto, Model(proto).weights, result_ir_version=8)))
    values = KnownValues(scope, Producers())

    refine_outputs(scope, proto.graph.node[0], 13, values)

    assert scope.value_type("y").shape == expected
