"""Clip: its bounds became inputs (opset 11)."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Clip", 12, reason="more types are allowed")
compatible(
    "Clip",
    13,
    reason="more types are allowed, and the result for min > max is specified: max, as runtimes computed it",
)


@adapter("Clip", to=11)
def clip_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`min` and `max` move from attributes to inputs of the data's type.

    Why equal: an omitted bound is the smallest or largest finite number of the data's type in both versions, so an
    infinity is clipped too; it stays omitted.
    """
    for index, name in enumerate(("min", "max"), start=1):
        rw.attribute_to_input(name, index, like=node.input[0])
