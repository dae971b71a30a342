"""The attributes of a node as Python values."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import AttributeProto, helper

__all__ = ["attributes_of"]


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """Return a node's attributes by name, without graphs and without those that refer to a function's attribute."""
    graphs = (AttributeProto.GRAPH, AttributeProto.GRAPHS)
    return {
        attribute.name: helper.get_attribute_value(attribute)
        for attribute in node.attribute
        if not attribute.ref_attr_name and attribute.type not in graphs
    }
