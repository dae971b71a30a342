"""One node's shapes and small values in every world."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_migrate.passes.dynamic_dims.repair.domain import Array, Assignments, Dim, Value
from onnx_migrate.passes.dynamic_dims.repair.node_inference import ShapeConflict, infer

ASSIGNMENTS = Assignments.of({"N": 1, "W": 12}, {"N"}, 64)
N, W = Dim(ASSIGNMENTS.sizes["N"]), Dim(ASSIGNMENTS.sizes["W"])


def held(array: Array) -> Value:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return Value(kind, tuple(map(ASSIGNMENTS.fixed, array.shape)), (array,) * ASSIGNMENTS.count)


def look(operator: str, *given: Value, outputs: int = 1, **attributes: object) -> list[Value]:
    names = [f"x{index}" for index in range(len(given))]
    node = helper.make_node(operator, names, [f"y{index}" for index in range(outputs)], **attributes)
    return infer(node, given, {"": 17}, 8, ASSIGNMENTS)


def test_a_shape_is_a_value_in_each_world() -> None:
    x = Value(TensorProto.FLOAT, (N, ASSIGNMENTS.fixed(3), W))

    (shape,) = look("Shape", x)
    (width,) = look("Gather", shape, held(np.array(2)))

    assert width.data is not None
    assert [array.item() for array in width.data] == list(W.sizes)


def test_parts_of_a_split() -> None:
    parts = look("Split", held(np.arange(6)), held(np.array([4, 2])), outputs=2)

    assert [part.data[1].tolist() if part.data else None for part in parts] == [[0, 1, 2, 3], [4, 5]]


def test_a_resize_is_as_long_as_it_runs() -> None:
    """In double precision 12 × float32(25 / 12) is 24.99…"""
    x = Value(TensorProto.FLOAT, (ASSIGNMENTS.fixed(1), ASSIGNMENTS.fixed(1), W))
    scales = held(np.array([1, 1, 25 / 12], np.float32))

    (y,) = look("Resize", x, held(np.zeros(0, np.float32)), scales, mode="nearest")

    assert y.dims is not None
    assert y.dims[2] is not None
    assert y.dims[2].sizes[0] == 25


def test_what_fails_at_other_sizes_only() -> None:
    with pytest.raises(ShapeConflict):
        look("Add", Value(TensorProto.FLOAT, (W,)), Value(TensorProto.FLOAT, (ASSIGNMENTS.fixed(12),)))
    assert (
        look("Add", Value(TensorProto.FLOAT, (W,)), Value(TensorProto.FLOAT, (ASSIGNMENTS.fixed(5),)))[0].dims
        is None
    )


def test_nothing_is_known_behind_foreign_nodes() -> None:
    node = helper.make_node("Odd", ["x"], ["y"], domain="com.acme")

    assert (
        infer(node, [Value(TensorProto.FLOAT, (N,))], {"": 17, "com.acme": 1}, 8, ASSIGNMENTS)[0].dims is None
    )
