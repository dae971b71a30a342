"""Attributes that are well formed, though unusual."""

from __future__ import annotations

import onnx
import pytest
from onnx import AttributeProto, helper

from onnx_migrate.model.validity.attributes import attribute_fault


def node(*attributes: AttributeProto) -> onnx.NodeProto:
    made = helper.make_node("Any", [], [])
    made.attribute.extend(attributes)
    return made


@pytest.mark.parametrize(
    "attribute",
    [
        helper.make_attribute("a", 1),
        helper.make_attribute("a", [1.0]),
        helper.make_attribute("a", "text"),
        AttributeProto(name="a", type=AttributeProto.INT),  # 0, as proto3 writes it
        AttributeProto(name="a", type=AttributeProto.FLOATS),
        AttributeProto(name="a", type=AttributeProto.TENSOR, ref_attr_name="b"),
        AttributeProto(name="a", ref_attr_name="b"),
    ],
    ids=lambda attribute: str(attribute).replace("\n", " "),
)
def test_valid_ones(attribute: AttributeProto) -> None:
    assert attribute_fault(node(attribute)) is None


def test_the_first_ir_version_has_attributes_without_a_type() -> None:
    untyped = node(AttributeProto(name="a", i=1))

    assert attribute_fault(untyped, untyped=True) is None
    fault = attribute_fault(untyped)
    assert fault is not None
    assert fault.code == "bad-attribute"


def graph(inputs: int, outputs: int, initializers: int = 0) -> onnx.GraphProto:
    values = [helper.make_tensor_value_info(f"v{index}", 1, [1]) for index in range(max(inputs, outputs))]
    tensors = [helper.make_tensor(f"v{index}", 1, [1], [0.0]) for index in range(inputs)][
        inputs - initializers :
    ]
    return helper.make_graph([], "b", values[:inputs], values[:outputs], tensors)


@pytest.mark.parametrize(
    ("valid", "invalid", "says"),
    [
        (("Constant", [], ["y"], {"value_float": 1.0}), ("Constant", [], ["y"], {}), "has no value"),
        (
            ("Constant", [], ["y"], {"value_ints": [1]}),
            ("Constant", [], ["y"], {"value_int": 1, "value_float": 1.0}),
            "has value_float and value_int",
        ),
        (
            ("If", ["c"], ["y"], {"then_branch": graph(0, 1), "else_branch": graph(1, 1, initializers=1)}),
            ("If", ["c"], ["y"], {"then_branch": graph(0, 1), "else_branch": graph(1, 1)}),
            "has else_branch with inputs",
        ),
        (
            ("If", ["c"], ["y", "z"], {"then_branch": graph(0, 2), "else_branch": graph(0, 2)}),
            ("If", ["c"], ["y", "z"], {"then_branch": graph(0, 1), "else_branch": graph(0, 2)}),
            "has 2 outputs, and its then_branch 1",
        ),
        (
            ("Loop", ["m", "c", "x"], ["y"], {"body": graph(4, 4, initializers=1)}),
            ("Loop", ["m", "c", "x"], ["y"], {"body": graph(2, 2)}),
            "has 3 inputs, so that its body must have 3, and it has 2",
        ),
        (
            ("Loop", ["m", "c"], ["y", "z"], {"body": graph(2, 3)}),
            ("Loop", ["m", "c"], ["y", "z"], {"body": graph(2, 2)}),
            "has 2 outputs, so that its body must have 3 or more, and it has 2",
        ),
        (
            ("Scan", ["", "s", "x"], ["t", "y"], {"body": graph(2, 2), "num_scan_inputs": 1}),
            ("Scan", ["x"], ["y"], {"body": graph(1, 1), "num_scan_inputs": 2**62}),
            "has num_scan_inputs=4611686018427387904 and 1 input",
        ),
        (
            ("Scan", ["s", "x"], ["t", "y"], {"body": graph(2, 2), "num_scan_inputs": 1}),
            ("Scan", ["s", "x"], ["t", "y"], {"body": graph(2, 1), "num_scan_inputs": 1}),
            "has 2 outputs, so that its body must have 2 or more, and it has 1",
        ),
    ],
)
def test_what_contradicts_the_node(valid: tuple, invalid: tuple, says: str) -> None:
    operator, inputs, outputs, attributes = valid
    assert attribute_fault(helper.make_node(operator, inputs, outputs, **attributes)) is None
    assert (
        attribute_fault(helper.make_node(operator, inputs, outputs, domain="own", **invalid[-1])) is None
    )  # not ours to say

    operator, inputs, outputs, attributes = invalid
    fault = attribute_fault(helper.make_node(operator, inputs, outputs, **attributes))
    assert fault is not None
    assert fault.code == "invalid-node"
    assert fault.reason.startswith(says)
