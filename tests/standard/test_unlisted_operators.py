"""Operators without a schema: the lists are whole, a Crop equals the Slice that replaces it, and inference goes on after them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper

from onnx_migrate.standard.schema import schema_violation, signature, signature_at
from onnx_migrate.standard.unlisted_operators import (
    EXPERIMENTAL_OPERATORS,
    RUNTIME_OPERATORS,
    crop_limits,
    is_runtime_operator,
    substitute_for_inference,
)
from tests.support.skips import Elsewhere, import_or_skip


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


def test_the_list_is_complete() -> None:
    state = import_or_skip("onnxruntime.capi.onnxruntime_pybind11_state", Elsewhere.INSTALLED)
    standard = {
        (schema.name, schema.since_version)
        for schema in onnx.defs.get_all_schemas_with_history()
        if not schema.domain
    }
    own = {
        schema.name
        for schema in state.get_all_operator_schema()
        if not schema.domain and (schema.name, schema.since_version) not in standard
    }
    newer = {
        schema.name
        for schema in state.get_all_operator_schema()
        if not schema.domain and schema.since_version > 10
    }

    listed = {operator.name for operator in (*RUNTIME_OPERATORS, *EXPERIMENTAL_OPERATORS)}
    assert {name for name in own if name not in newer or name == "LayerNormalization"} <= listed


@pytest.mark.parametrize("operator", RUNTIME_OPERATORS, ids=lambda operator: operator.name)
def test_its_attributes_are_those_of_onnx_runtime(operator) -> None:  # type: ignore[no-untyped-def]
    state = import_or_skip("onnxruntime.capi.onnxruntime_pybind11_state", Elsewhere.INSTALLED)
    (schema,) = [
        schema
        for schema in state.get_all_operator_schema()
        if not schema.domain and schema.name == operator.name and schema.since_version == 1
    ]

    assert set(operator.attributes) == set(schema.attributes)
    assert operator.required == any(item.required for item in schema.attributes.values())
    assert operator.inputs[1] == len(schema.inputs)
    assert operator.outputs[1] == len(schema.outputs)


def test_where_the_standard_has_the_name() -> None:
    node = helper.make_node("LayerNormalization", ["x", "w"], ["y"])

    assert is_runtime_operator(node, 16)
    assert not is_runtime_operator(node, 17)
    assert not is_runtime_operator(
        helper.make_node("LayerNormalization", ["x", "w"], ["y"], domain="com.acme"), 16
    )
    form = signature_at("", "LayerNormalization", 11)
    assert form is not None
    assert schema_violation(node, form) is None


def test_the_substitute_of_inference_has_one_input_and_output() -> None:
    node = helper.make_node("SimplifiedLayerNormalization", ["x", "w"], ["y", "i"], epsilon=1e-5)
    substitute_for_inference([node], 17)

    assert (node.op_type, list(node.input), list(node.output), len(node.attribute)) == (
        "Identity",
        ["x"],
        ["y"],
        0,
    )


def test_required_attributes() -> None:
    node = helper.make_node("PyramidROIAlign_TRT", list("abcde"), ["y"], pooled_size=7)

    complaint = schema_violation(node, signature("", "PyramidROIAlign_TRT", 1))
    assert complaint is not None
    assert "plugin_version" in complaint
