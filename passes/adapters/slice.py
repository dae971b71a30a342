"""Slice, whose starts, ends and axes became inputs (opset 10), and Gather."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Slice", 11, reason="negative axes are allowed, and steps of 0 are not")
compatible("Slice", 13, reason="more types are allowed, and the clamping of starts and ends is specified")
compatible("Gather", 11, reason="negative indices are allowed")
compatible("Gather", 13, reason="more types are allowed")


@adapter("Slice", to=10)
def slice_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`starts`, `ends` and `axes` move from attributes to inputs.

    What changes: omitted axes are set to the first ones, as many as there are starts, which was the default. From
    opset 10 on the standard's default is all axes.
    """
    starts = rw.attribute("starts")
    if rw.attribute("axes") is None and starts is not None and not starts.ref_attr_name:
        rw.set("axes", list(range(len(starts.ints))))
    for index, name in enumerate(("starts", "ends", "axes"), start=1):
        rw.attribute_to_input(name, index)
