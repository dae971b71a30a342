"""Squeeze and Unsqueeze: axes became an input (opset 13)."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

for _operator in ("Squeeze", "Unsqueeze"):
    compatible(_operator, 11, reason="negative axes are allowed")
    compatible(_operator, 21, 23, 24, 25, reason="more types are allowed")


@adapter("Squeeze", "Unsqueeze", to=13)
def axes_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axes` moves from an attribute to an input.

    What changes: an empty list of a Squeeze is omitted; both mean every axis of length 1.
    """
    axes = rw.attribute("axes")
    if node.op_type == "Squeeze" and axes is not None and not axes.ref_attr_name and not axes.ints:
        rw.drop("axes")
    rw.attribute_to_input("axes", 1)
