"""Squeeze and Unsqueeze: axes became an input."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.registry import adapter
from onnx_migrate.model.rewriter import Rewriter


@adapter("Squeeze", "Unsqueeze", to=13)
def axes_13(node: onnx.NodeProto, rw: Rewriter) -> None:
    """`axes` moves from an attribute to an input."""
    rw.attribute_to_input("axes", 1)
