"""Slice and Gather: where to start and to end became inputs."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Slice", 11, reason="negative axes are allowed, and steps of 0 are not")
compatible("Slice", 13, reason="more types are allowed, and the clamping of starts and ends is spelled out")
compatible("Gather", 11, reason="negative indices are allowed")
compatible("Gather", 13, reason="more types are allowed")


@adapter("Slice", to=10)
def slice_10(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`starts`, `ends` and `axes` move from attributes to inputs.

    What changes: left-out axes, which were the first ones, as many as there are starts, are written out,
    since from opset 10 on the text says that all axes are meant.
    """
    starts = rw.attribute("starts")
    if rw.attribute("axes") is None and starts is not None and not starts.ref_attr_name:
        rw.set("axes", list(range(len(starts.ints))))
    for index, name in enumerate(("starts", "ends", "axes"), start=1):
        rw.attribute_to_input(name, index)
