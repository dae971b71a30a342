"""Reshape and Expand: the shape became an input."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Reshape", 13, 19, 21, 23, 24, 25, reason="more types are allowed")
compatible(
    "Reshape", 14, reason="allowzero was added; its default 0 is the old way: a 0 keeps the input's length"
)
compatible("Expand", 13, reason="more types are allowed")


@adapter("Reshape", to=5)
def reshape_5(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`shape` moves from an attribute to an input; 0 and -1 in it mean what they meant."""
    rw.drop("consumed_inputs")
    if rw.attribute("shape") is None:
        rw.refuse("has no shape to give", code="invalid-node")
    rw.attribute_to_input("shape", 1)
