"""The transfer function of one node under all assignments, and what it adds to onnx's inference."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_migrate.passes.dynamic_dims.repair.domain import Array, Assignments, Dim, Value, fixed, merged_axis
from onnx_migrate.passes.dynamic_dims.repair.domain.node_inference import ShapeConflict, infer
from onnx_migrate.passes.dynamic_dims.repair.domain.values import known_value

ASSIGNMENTS = Assignments.of({"N": 1, "W": 12}, {"N"}, 64)
N, W = Dim(ASSIGNMENTS.sizes["N"]), Dim(ASSIGNMENTS.sizes["W"])


def infer_one(operator: str, *given: Value, outputs: int = 1, **attributes: object) -> list[Value]:
    names = [f"x{index}" for index in range(len(given))]
    node = helper.make_node(operator, names, [f"y{index}" for index in range(outputs)], **attributes)
    return infer(node, given, {"": 17}, 8)


def test_a_node_that_is_invalid_at_other_sizes_only_is_a_conflict() -> None:
    with pytest.raises(ShapeConflict):
        infer_one("Add", Value(TensorProto.FLOAT, (W,)), Value(TensorProto.FLOAT, (fixed(12),)))
    assert (
        infer_one("Add", Value(TensorProto.FLOAT, (W,)), Value(TensorProto.FLOAT, (fixed(5),)))[0].dims
        is None
    )


def test_outputs_of_an_operator_without_schema_are_unknown() -> None:
    node = helper.make_node("Odd", ["x"], ["y"], domain="com.acme")

    assert infer(node, [Value(TensorProto.FLOAT, (N,))], {"": 17, "com.acme": 1}, 8)[0].dims is None


def test_a_merged_axis_keeps_its_factors_through_a_node() -> None:
    heads = merged_axis([N, fixed(2)])

    (y,) = infer_one("Relu", Value(TensorProto.FLOAT, (heads, W)))

    assert y.known is not None
    assert y.known[0].flat_factors() == [N, fixed(2)]


@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize("operator", ["LessOrEqual", "GreaterOrEqual"])
def test_operators_that_onnx_does_not_infer_alone(operator: str, opset: int) -> None:
    node = helper.make_node(operator, ["a", "b"], ["y"])
    wide, narrow = Value(TensorProto.FLOAT, (N, W)), Value(TensorProto.FLOAT, (fixed(12),))

    (y,) = infer(node, [wide, wide], {"": opset}, 8)

    assert (y.dtype, y.dims) == (TensorProto.BOOL, (N, W))
    with pytest.raises(ShapeConflict):
        infer(node, [wide, narrow], {"": opset}, 8)


@pytest.mark.parametrize(
    ("operator", "opset"), [("GroupNormalization", 21), ("MeanVarianceNormalization", 13)]
)
def test_operators_that_are_functions_without_inference(operator: str, opset: int) -> None:
    inputs = ["x", "s", "b"] if operator == "GroupNormalization" else ["x"]
    node = helper.make_node(operator, inputs, ["y"], **({"num_groups": 2} if len(inputs) > 1 else {}))
    channels = Value(TensorProto.FLOAT, (fixed(4),))
    x = Value(TensorProto.FLOAT, (N, fixed(4), W, W))

    (y,) = infer(node, [x, channels, channels][: len(inputs)], {"": opset}, 8)

    assert (y.dtype, y.dims) == (TensorProto.FLOAT, x.dims)


N, W = Dim(ASSIGNMENTS.sizes["N"]), Dim(ASSIGNMENTS.sizes["W"])


def constant(array: Array) -> Value:
    return known_value(array)


def outputs_of(operator: str, *inputs: Value, outputs: int = 1, **attributes: object) -> list[Value]:
    names = [f"x{index}" for index in range(len(inputs))]
    node = helper.make_node(operator, names, [f"y{index}" for index in range(outputs)], **attributes)
    return infer(node, inputs, {"": 17}, 8)


def test_a_shape_is_known_under_each_assignment() -> None:
    x = Value(TensorProto.FLOAT, (N, fixed(3), W))

    (shape,) = outputs_of("Shape", x)
    (width,) = outputs_of("Gather", shape, constant(np.array(2)))

    assert width.data is not None
    assert [array.item() for array in width.data] == list(W.sizes)


def test_elements_of_a_split_are_those_of_its_parts() -> None:
    parts = outputs_of("Split", constant(np.arange(6)), constant(np.array([4, 2])), outputs=2)

    assert [part.data[1].tolist() if part.data else None for part in parts] == [[0, 1, 2, 3], [4, 5]]


def test_a_resize_has_the_length_that_runs() -> None:
    """In double precision 12 × float32(25 / 12) is 24.99…, which onnx rounds down to 24."""
    x = Value(TensorProto.FLOAT, (fixed(1), fixed(1), W))
    scales = constant(np.array([1, 1, 25 / 12], np.float32))

    (y,) = outputs_of("Resize", x, constant(np.zeros(0, np.float32)), scales, mode="nearest")

    assert y.dims is not None
    assert y.dims[2] is not None
    assert y.dims[2].sizes[0] == 25


def test_an_expand_to_an_unknown_shape_keeps_axes_longer_than_one() -> None:
    shape = Value(TensorProto.INT64, (fixed(3),))

    (y,) = outputs_of("Expand", Value(TensorProto.FLOAT, (W, fixed(1))), shape)

    assert y.dims == (None, W, None)
