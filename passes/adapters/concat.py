"""Concat: from opset 4 on its axis has no default."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

compatible("Concat", 11, reason="a negative axis is allowed")
compatible("Concat", 13, reason="more types are allowed")


@adapter("Concat", to=4)
def concat_4(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axis` is set to 1 if it was omitted, since from opset 4 on it has no default."""
    if rw.attribute("axis") is None:
        rw.set("axis", 1)
