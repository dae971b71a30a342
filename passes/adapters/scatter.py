"""Scatter, ScatterElements and ScatterND."""

from __future__ import annotations

import onnx

from onnx_migrate.engine.steps.registry import adapter, compatible
from onnx_migrate.rewrite.rewriter import Rewriter

for _name in ("ScatterElements", "ScatterND"):
    compatible(_name, 13, reason="more types are allowed")
    compatible(_name, 16, reason="reduction was added; its default none is the behaviour of older versions")
    compatible(_name, 18, reason="reduction may be max or min")


@adapter("Scatter", to=11)
def scatter_11(node: onnx.NodeProto, rw: Rewriter) -> None:
    """Scatter is renamed to ScatterElements."""
    rw.rename("ScatterElements")
