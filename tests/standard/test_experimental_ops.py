"""The removed operators of ai.onnx: a Crop equals the Slice that replaces it, and inference goes on after them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from onnx_migrate.standard.experimental_ops import (
    EXPERIMENTAL_OPERATORS,
    crop_limits,
    substitute_for_inference,
)


@pytest.mark.parametrize(
    ("border", "scale", "rows", "columns"),
    [
        ([1, 2, 3, 4], [], slice(2, 10 - 4), slice(1, 8 - 3)),
        ([1, 2, 0, 0], [], slice(2, 10), slice(1, 8)),
        ([1, 2, 3, 4], [5, 6], slice(2, 7), slice(1, 7)),
        ([], [5, 6], slice(0, 5), slice(0, 6)),
        ([], [], slice(0, 10), slice(0, 8)),
    ],
)
def test_a_crop_is_a_slice(border: list[int], scale: list[int], rows: slice, columns: slice) -> None:
    image = np.arange(80).reshape(10, 8)

    limits = crop_limits(border, scale)

    assert limits is not None
    (top, left), (bottom, right) = limits
    np.testing.assert_array_equal(image[top:bottom, left:right], image[rows, columns])


@pytest.mark.parametrize(("border", "scale"), [([1], []), ([1, 2, 3, -4], []), ([], [1]), ([], [-1, 2])])
def test_attributes_without_a_meaning_have_no_limits(border: list[int], scale: list[int]) -> None:
    assert crop_limits(border, scale) is None


def infer(node: onnx.NodeProto, opset: int) -> list[int | None]:
    graph = helper.make_graph(
        [node, helper.make_node("Relu", ["c"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 10, 8])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=4)
    substitute_for_inference(model.graph.node, opset)
    shape = onnx.shape_inference.infer_shapes(model).graph.output[0].type.tensor_type.shape
    return [dim.dim_value for dim in shape.dim]


def test_inference_goes_on_after_a_removed_operator() -> None:
    assert infer(helper.make_node("ImageScaler", ["x"], ["c"], scale=2.0), 9) == [1, 3, 10, 8]
    assert infer(helper.make_node("Crop", ["x"], ["c"], border=[1, 2, 3, 4]), 9) == [1, 3, 4, 4]


def test_an_operator_that_is_not_experimental_stays() -> None:
    nodes = [
        helper.make_node("Affine", ["x"], ["a"]),
        helper.make_node("Affine", ["x"], ["b"], domain="com.acme"),
        helper.make_node("GRUUnit", ["x", "x", "x", "x"], ["c"]),
    ]

    substitute_for_inference(nodes, 10)
    assert [node.op_type for node in nodes] == ["Affine", "Affine", "GRUUnit"]
    substitute_for_inference(nodes, 9)
    assert [node.op_type for node in nodes] == ["Identity", "Affine", "GRUUnit"]


def test_the_installed_onnx_has_a_schema_of_none_of_them() -> None:
    for operator in EXPERIMENTAL_OPERATORS:
        assert not onnx.defs.has(operator.name, operator.removed_in - 1, "")
