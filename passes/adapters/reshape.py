"""Reshape, whose shape became an input (opset 5), and Expand."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Reshape", 13, 19, 21, 23, 24, 25, reason="more types are allowed")
compatible(
    "Reshape",
    14,
    reason="allowzero was added; by default a 0 in the shape keeps the input's length, as before",
)
compatible("Expand", 13, reason="more types are allowed")


@adapter("Reshape", to=5)
def reshape_5(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`shape` moves from an attribute to an input; 0 and -1 in it have the same meaning."""
    rw.drop("consumed_inputs")
    if rw.attribute("shape") is None:
        rw.refuse("has no attribute shape", code="invalid-node")
    rw.attribute_to_input("shape", 1)
