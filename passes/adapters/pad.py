"""Pad: pads and value became inputs (opset 11)."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Pad", 13, 21, 23, 24, 25, reason="more types are allowed")
compatible(
    "Pad",
    18,
    reason="the optional input axes was added; without it the pads are those of all axes, as before",
)
compatible("Pad", 19, reason="the mode wrap was added")


@adapter("Pad", to=2)
def pad_2(node: onnx.NodeProto, rw: Rewriter) -> None:
    """The attribute `paddings` is renamed to `pads`."""
    paddings = rw.attribute("paddings")
    if paddings is not None:
        paddings.name = "pads"


@adapter("Pad", to=11)
def pad_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`pads` and `value` move from attributes to inputs, the value in the data's type.

    What changes: a value of 0, which is the default, is omitted, and so is one that the mode does not use.
    """
    rw.attribute_to_input("pads", 1)
    value, mode = rw.attribute("value"), rw.attribute("mode")
    unread = mode is not None and not mode.ref_attr_name and mode.s != b"constant"
    if value is not None and (unread or not (value.ref_attr_name or value.f)):
        rw.drop("value")
    rw.attribute_to_input("value", 2, like=node.input[0])
