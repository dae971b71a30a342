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
