"""Shapes that follow from known values, seen by lowerings that need a rank."""

from __future__ import annotations

from functools import partial

import pytest
from onnx import TensorProto

from onnx_migrate.analysis.known_values import KnownValues, Producers
from onnx_migrate.analysis.scope import scopes
from onnx_migrate.analysis.shape_arithmetic import OPERATORS
from onnx_migrate.analysis.shape_refinement import refine_outputs
from onnx_migrate.analysis.value_types import ValueType
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
        ("s = Concat <axis = 0> (four, three)  y = Reshape (x, s)", (4, 3)),
        ("s = Concat <axis = 0> (zero, three)  y = Reshape (x, s)", (None, 3)),
        ("s = Concat <axis = 0> (fed, three)  y = Reshape (x, s)", (None, None)),
        (
            "t = Shape (x)  u = Gather (t, zero)  s = Concat <axis = 0> (u, three)  y = Reshape (x, s)",
            (None, 3),
        ),
        ("s = Concat <axis = 0> (fed, fed)  y = Reshape (x, s)", (None, None)),
        ("s = Concat <axis = 0> (four, three)  y = Expand (x, s)", (4, 3)),
        ("s = Concat <axis = 0> (four, one, one)  y = Expand (x, s)", (4, None, 3)),
        ("s = Concat <axis = 0> (zero, three)  y = ConstantOfShape (s)", (0, 3)),
        ("s = Cast <to = 7> (many)  y = Reshape (x, s)", None),
    ],
)
def test_what_is_known_of_a_shape_is_entered(body: str, expected: tuple[int | None, ...] | None) -> None:
    proto = model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[N,3] x, int64[1] fed, int32[M] many) => (float y)
        <int64[1] four = {{4}}, int64[1] three = {{3}}, int64[1] zero = {{0}}, int64[1] one = {{1}}> {{ {body} }}"""
    )
    del proto.graph.output[:]
    scope = next(iter(scopes(proto, Model(proto).weights, result_ir_version=8)))
    scope.record_type(
        "y", ValueType(TensorProto.FLOAT, None)
    )  # what onnx's inference finds is out of question
    values = KnownValues(scope, Producers(), followed=OPERATORS)

    values.find_all(partial(refine_outputs, scope, opset=13, values=values))

    assert scope.value_type("y").shape == expected
    assert scope.value_type("y").dtype == TensorProto.FLOAT


def test_nodes_of_other_domains_are_left_out() -> None:
    proto = model(
        """<ir_version: 8, opset_import: ["": 13, "custom": 1]> g (float[2,3] x) => (float y)
        <int64[2] s = {3, 2}> { y = custom.Reshape (x, s) }"""
    )
    del proto.graph.output[:]
    scope = next(iter(scopes(proto, Model(proto).weights, result_ir_version=8)))

    refine_outputs(scope, proto.graph.node[0], 13, KnownValues(scope, Producers()))

    assert scope.value_type("y").shape is None


@pytest.mark.parametrize(
    ("attributes", "dtype"),
    [
        ("keys_int64s = [1, 2], values_floats = [0.5, 1.5]", TensorProto.FLOAT),
        ("keys_floats = [1.0, 2.0], values_int64s = [5, 6]", TensorProto.INT64),
        ("keys_int64s = [1, 2], values_strings = [\"a\", \"b\"]", TensorProto.STRING),
    ],
)  # fmt: skip
def test_what_a_label_encoder_gives_out(attributes: str, dtype: int) -> None:
    """onnx's inference is kept from it where its input is no input of the model: it would crash the process."""
    kind = TensorProto.INT64 if "keys_int64s" in attributes else TensorProto.FLOAT
    proto = model(f"""<ir_version: 7, opset_import: ["": 13, "ai.onnx.ml": 2]> graph (float[N, 3] x) => (y) {{
        c = Cast <to = {kind}> (x)  y = ai.onnx.ml.LabelEncoder <{attributes}> (c) }}""")
    scope = next(iter(scopes(proto, Model(proto).weights, result_ir_version=7)))
    values = KnownValues(scope, Producers())
    values.find_all(partial(refine_outputs, scope, opset=13, values=values))
    assert (scope.value_type("y").dtype, scope.value_type("y").shape) == (dtype, (None, 3))


def test_a_shape_of_more_axes_than_any_tensor_has_is_not_kept() -> None:
    """The length of the shape is 2^40: a list of that length would take all memory."""
    from onnx_migrate.migration import migrate
    from tests.hostile.growth import doubled_shapes

    result = migrate(doubled_shapes(), simplify=False, verify="off")
    assert [note.code for note in result.report.notes].count("inference-limit") <= 1
