"""Attributes of a node as Python values."""

from __future__ import annotations

import onnx
from onnx import helper
from onnx_migrate.passes.dynamic_dims.repair.domain.attributes import attributes_of


def test_graphs_and_references_to_a_functions_attributes_are_left_out() -> None:
    node = helper.make_node("Softmax", ["x"], ["y"], axis=2, body=onnx.GraphProto())
    node.attribute.append(onnx.AttributeProto(name="mode", ref_attr_name="outer"))

    assert attributes_of(node) == {"axis": 2}
