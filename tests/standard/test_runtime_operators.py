"""The list of ONNX Runtime's own operators in ai.onnx is what the installed one registers."""

from __future__ import annotations

import onnx
import pytest
from onnx import helper

from onnx_migrate.standard.experimental_ops import EXPERIMENTAL_OPERATORS
from onnx_migrate.standard.runtime_operators import RUNTIME_OPERATORS, is_runtime_operator, runtime_substitute
from onnx_migrate.standard.schema import schema_violation, signature, signature_at


def test_the_list_is_complete() -> None:
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
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
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
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
    runtime_substitute(node, 17)

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
